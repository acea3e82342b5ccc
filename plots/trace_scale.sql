-- A traced step on more GPUs: its speed against that of as many times the traced one, with 5 to 95 % of the samples, and what the step is made of: the newest `flopcast trace scale TRACE --db`.

-- name: points
WITH newest AS (SELECT * FROM trace_scale_point WHERE trace_scale_id = (SELECT max(id) FROM trace_scale)),
base AS (SELECT step_time_s AS first_s FROM newest ORDER BY position LIMIT 1)
SELECT
  gpus AS x,
  100 * first_s / step_time_s AS speed,
  100 * first_s / step_time_high_s AS low,
  100 * first_s / step_time_low_s AS high,
  100 * (compute_s - contention_s) / step_time_s AS kernels,
  100 * contention_s / step_time_s AS contention,
  100 * exposed_comm_s / step_time_s AS exposed,
  100 * rank_wait_s / step_time_s AS ranks,
  100 * bubble_s / step_time_s AS bubble,
  100 * host_bound_s / step_time_s AS host,
  100 * other_idle_s / step_time_s AS idle
FROM newest, base
ORDER BY gpus

-- name: heading
WITH newest AS (SELECT * FROM trace_scale_point WHERE trace_scale_id = (SELECT max(id) FROM trace_scale))
SELECT
  scenario || printf(': %.4g ms on %d GPUs, on %s', 1e3 * (SELECT traced_step_time_s FROM newest), (SELECT traced_gpus FROM newest), cluster) AS setting,
  iif(samples > 0, printf('Band: 5 to 95 %% of %d samples of the cluster''s numbers; kernels and host as they were traced.', samples),
    'Kernels and host as they were traced. No band: --samples was not given.') AS note,
  samples > 0 AS banded
FROM trace_scale
WHERE id = (SELECT max(id) FROM trace_scale)
