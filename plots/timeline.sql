-- Where the time of one step goes, stream by stream: the newest trace of all (`flopcast run --trace FILE --db`).

-- name: spans
SELECT
  1000 * start_s AS start_ms,
  1000 * end_s AS end_ms,
  lane,
  CASE WHEN is_collective THEN 5 ELSE kind END AS kind
FROM (
  SELECT span.*,
    dense_rank() OVER (ORDER BY rank, CASE stream WHEN 'compute' THEN 0 WHEN 'comm' THEN 1 ELSE 2 END, stream) AS lane,
    CASE phase WHEN 'forward' THEN 1 WHEN 'recompute' THEN 2 WHEN 'backward' THEN 3 ELSE 4 END AS kind
  FROM span
  -- By way of the run, which `plot --scenario` narrows.
  WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
)
ORDER BY lane, start_s

-- name: waits
SELECT 1000 * start_s AS start_ms, 1000 * moving_s AS end_ms, lane
FROM (
  SELECT span.*,
    dense_rank() OVER (ORDER BY rank, CASE stream WHEN 'compute' THEN 0 WHEN 'comm' THEN 1 ELSE 2 END, stream) AS lane
  FROM span
  WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
)
WHERE is_collective AND moving_s > start_s
ORDER BY lane, start_s

-- name: lanes
SELECT
  row_number() OVER (ORDER BY rank, CASE stream WHEN 'compute' THEN 0 WHEN 'comm' THEN 1 ELSE 2 END, stream) AS lane,
  'rank ' || rank || ' ' || stream AS label,
  printf('%.0f %% busy', 100 * sum(end_s - start_s) / (SELECT step_time_s FROM point WHERE id = point_id)) AS busy
FROM span
WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
GROUP BY rank, stream

-- name: heading
SELECT printf('%s: %s, %s, batch %d, %d GPUs, step of %.4g s', scenario, model, strategy, micro_batch, gpus, step_time_s) AS setting
FROM point JOIN run ON run.id = run_id
WHERE point.id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
