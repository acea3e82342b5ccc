-- HBM over a step by category, of the fullest point of the newest `flopcast run SCENARIO --db` (--where chooses); each category stands on those before it.

-- A sample holds until the next one: two rows each. Times from the first sample on: the host issues it before the GPU has ended the step
-- before, so that on the GPU's clock the axis would begin below 0.
-- name: use
WITH sample AS (
  SELECT *, lead(time_s) OVER (ORDER BY sample) AS next_s, min(time_s) OVER () AS first_s FROM timeline
  WHERE point_id = (SELECT point_id FROM shown JOIN point ON point.id = point_id WHERE id IN (SELECT point_id FROM timeline) ORDER BY peak_reserved_bytes DESC, place LIMIT 1)
)
SELECT
  1000 * (at_s - first_s) AS ms,
  parameters_bytes / 0x40000000 AS parameters,
  (parameters_bytes + optimizer_bytes) / 0x40000000 AS optimizer,
  (parameters_bytes + optimizer_bytes + gradients_bytes) / 0x40000000 AS gradients,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes) / 0x40000000 AS gathered,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes + buffers_bytes) / 0x40000000 AS buffers,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes + buffers_bytes + activations_bytes) / 0x40000000 AS activations,
  reserved_bytes / 0x40000000 AS reserved
FROM (SELECT *, time_s AS at_s, 0 AS part FROM sample UNION ALL SELECT *, next_s, 1 FROM sample WHERE next_s > time_s)
ORDER BY sample, part

-- name: peak
SELECT 1000 * (time_s - first_s) AS ms, max(total) / 0x40000000 AS total, printf('peak: %.1f GiB at %.3g ms', max(total) / 0x40000000, 1000 * (time_s - first_s)) AS text
FROM (
  SELECT time_s, min(time_s) OVER () AS first_s,
    parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes + buffers_bytes + activations_bytes AS total
  FROM timeline
  WHERE point_id = (SELECT point_id FROM shown JOIN point ON point.id = point_id WHERE id IN (SELECT point_id FROM timeline) ORDER BY peak_reserved_bytes DESC, place LIMIT 1)
)

-- name: heading
SELECT
  printf('%s: %s %s, batch %d%s, %d GPU%s', scenario, model, strategy, micro_batch, coalesce(', ' || varied, ''), gpus, iif(gpus = 1, '', 's'))
    || coalesce((SELECT printf('; stage %d of %d (from 0), the fullest', program,
      (SELECT count(*) FROM program WHERE program.point_id = shown.point_id)) FROM program WHERE program.point_id = shown.point_id AND fullest), '') AS setting,
  hbm_capacity_bytes / 0x40000000 AS capacity
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id
WHERE point_id IN (SELECT point_id FROM timeline)
ORDER BY peak_reserved_bytes DESC, place
LIMIT 1
