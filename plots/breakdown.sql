-- Where the time of a step goes, of the newest `flopcast run SCENARIO --db`.

-- name: bars
SELECT
  row_number() OVER (ORDER BY position) AS place,
  printf('%s %s, batch %d, %d GPUs', model, strategy, micro_batch, gpus) AS label,
  compute_alone_s AS compute,
  contention_s AS contention,
  exposed_comm_s AS exposed,
  host_bound_s AS host,
  other_idle_s AS idle,
  step_time_s AS step
FROM v_breakdown
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
ORDER BY position

-- name: heading
SELECT scenario || ': ' || cluster AS setting
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
LIMIT 1
