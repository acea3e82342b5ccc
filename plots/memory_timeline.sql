-- HBM over a step by category, of the fullest point of the newest `flopcast run SCENARIO --db` (--where chooses); each category stands on those before it.

-- name: use
SELECT
  sample,
  parameters_bytes / 0x40000000 AS parameters,
  (parameters_bytes + optimizer_bytes) / 0x40000000 AS optimizer,
  (parameters_bytes + optimizer_bytes + gradients_bytes) / 0x40000000 AS gradients,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes) / 0x40000000 AS gathered,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes + buffers_bytes) / 0x40000000 AS buffers,
  (parameters_bytes + optimizer_bytes + gradients_bytes + gathered_bytes + buffers_bytes + activations_bytes) / 0x40000000 AS activations,
  reserved_bytes / 0x40000000 AS reserved
FROM timeline
WHERE point_id = (SELECT point_id FROM shown JOIN point ON point.id = point_id WHERE id IN (SELECT point_id FROM timeline) ORDER BY peak_reserved_bytes DESC, place LIMIT 1)
ORDER BY sample

-- name: ticks
-- An eighth of the samples apart; the last row is the last sample. From the first one on: the host issues it before the GPU has ended
-- the step before, so that on the GPU's clock the axis would begin below 0.
SELECT sample, iif(sample % (last / 8 + 1) = 0, printf('%.*f', iif(lasts_s < 0.8, 1, 0), 1000 * (time_s - first_s)), '') AS ms
FROM timeline, (SELECT point_id AS drawn, max(sample) AS last, min(time_s) AS first_s, max(time_s) - min(time_s) AS lasts_s FROM timeline WHERE point_id =
  (SELECT point_id FROM shown JOIN point ON point.id = point_id WHERE id IN (SELECT point_id FROM timeline) ORDER BY peak_reserved_bytes DESC, place LIMIT 1))
WHERE point_id = drawn AND (sample % (last / 8 + 1) = 0 OR sample = last)
ORDER BY sample

-- name: heading
SELECT
  printf('%s: %s %s, batch %d%s, %d GPU%s', scenario, model, strategy, micro_batch, coalesce(', ' || varied, ''), gpus, iif(gpus = 1, '', 's')) AS setting,
  hbm_capacity_bytes / 0x40000000 AS capacity
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id
WHERE point_id IN (SELECT point_id FROM timeline)
ORDER BY peak_reserved_bytes DESC, place
LIMIT 1
