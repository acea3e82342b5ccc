-- Where the time of one step goes, stream by stream: the newest of `flopcast run SCENARIO --trace FILE --db` and `flopcast calibrate check trace FILE --db`.
-- The latter is drawn with what was measured above what is simulated. --from, --to: a part of it.
-- Of a pipeline whose trace has several stages: a row a stage, its compute stream, micro-batch by micro-batch.

-- name: spans
WITH shown AS (
  SELECT v_timeline.*, dense_rank() OVER (ORDER BY place, rank, stream_place, stream) AS lane
  FROM v_timeline
  -- By way of the run, which `plot --scenario` narrows.
  WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
    AND end_s > coalesce(:from_s, -9e9) AND start_s < coalesce(:to_s, 9e9)
)
SELECT
  1000 * start_s AS start_ms,
  1000 * end_s AS end_ms,
  lane,
  CASE
    WHEN host IN ('waits', 'queue', 'allocates') THEN 6
    WHEN is_collective THEN 5
    WHEN phase = 'forward' THEN 1
    WHEN phase = 'recompute' THEN 2
    WHEN phase = 'backward' THEN 3
    ELSE 4
  END AS kind
FROM shown
UNION ALL -- 6: a collective that waits for its last member, over its beginning
SELECT 1000 * start_s, 1000 * moving_s, lane, 6 FROM shown WHERE is_collective AND moving_s > start_s
ORDER BY lane, start_ms, kind

-- What has room in its box; of a long name its end behind two points, which distinguishes it from its neighbours.
-- name: names
WITH shown AS (
  SELECT v_timeline.*, dense_rank() OVER (ORDER BY place, rank, stream_place, stream) AS lane
  FROM v_timeline
  WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
    AND end_s > coalesce(:from_s, -9e9) AND start_s < coalesce(:to_s, 9e9)
), seen AS (
  SELECT lane, name, max(moving_s, coalesce(:from_s, -9e9)) AS from_s, min(end_s, coalesce(:to_s, 9e9)) AS to_s,
    coalesce(:to_s, max(end_s) OVER ()) - coalesce(:from_s, min(start_s) OVER ()) AS window_s
  FROM shown
)
SELECT 500 * (from_s + to_s) AS middle_ms, lane,
  iif(length(name) <= 120 * (to_s - from_s) / window_s, name, '..' || substr(name, 2 - CAST(120 * (to_s - from_s) / window_s AS INTEGER))) AS name
FROM seen
WHERE 120 * (to_s - from_s) / window_s >= 6 -- 120 characters of the small font fill a row
ORDER BY lane, middle_ms

-- Busy: of the host thread what it is not blocked for.
-- name: lanes
SELECT
  row_number() OVER (ORDER BY place, rank, stream_place, stream) AS lane,
  label,
  coalesce(sum(min(end_s, coalesce(:to_s, 9e9)) - max(start_s, coalesce(:from_s, -9e9)))
    FILTER (WHERE host IS NULL OR host IN ('issues', 'works')), 0) AS busy_s
FROM v_timeline
WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
  AND end_s > coalesce(:from_s, -9e9) AND start_s < coalesce(:to_s, 9e9)
GROUP BY place, rank, stream_place, stream, label

-- name: heading
SELECT
  printf('%s: %s, %s, batch %d, %d GPU%s, step of %.4g s', scenario, point.model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'),
      point.step_time_s)
    || coalesce((SELECT printf(', measured %.4g s', step.step_time_s) FROM v_trace_step AS step WHERE point_id = point.id ORDER BY fit_id DESC LIMIT 1), '')
    || iif(coalesce(:from_s, :to_s) IS NULL, '', ', a part of it') AS setting,
  -- ms; the axis ends where the cut does, else where the spans do
  coalesce(1000 * :from_s, (SELECT 1000 * min(start_s) FROM v_cell WHERE point_id = point.id),
    (SELECT 1000 * min(start_s) FROM v_timeline WHERE point_id = point.id)) AS from_ms,
  coalesce(1000 * :to_s, (SELECT 1000 * max(end_s) FROM v_cell WHERE point_id = point.id),
    (SELECT 1000 * max(end_s) FROM v_timeline WHERE point_id = point.id)) AS to_ms
FROM point JOIN run ON run.id = run_id
WHERE point.id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))

-- kind: 1, 2 forward, 3, 4 backward (of the inputs), each of odd and of even chunks; 5 backward of the weights; 6 of no cell
-- name: cells
WITH shown AS (
  SELECT *, dense_rank() OVER (ORDER BY stage, rank) AS lane,
    coalesce(:to_s, max(end_s) OVER ()) - coalesce(:from_s, min(start_s) OVER ()) AS window_s
  FROM v_cell
  WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
    AND end_s > coalesce(:from_s, -9e9) AND start_s < coalesce(:to_s, 9e9)
)
SELECT
  1000 * start_s AS start_ms,
  1000 * end_s AS end_ms,
  lane,
  CASE
    WHEN number IS NULL THEN 6
    WHEN pass = 'forward' THEN 1 + chunk % 2
    WHEN pass = 'backward_weight' THEN 5
    ELSE 3 + chunk % 2
  END AS kind,
  -- the number where it has room: 150 digits of the small font fill a row
  iif(number IS NOT NULL AND 150 * (end_s - start_s) / window_s > length(number), number, ' ') AS number,
  500 * (max(start_s, coalesce(:from_s, -9e9)) + min(end_s, coalesce(:to_s, 9e9))) AS middle_ms
FROM shown
ORDER BY lane, start_ms

-- name: stages
SELECT dense_rank() OVER (ORDER BY stage, rank) AS lane, printf('stage %d', stage) AS label,
  sum(busy_s) AS busy_s
FROM v_cell
WHERE point_id = (SELECT max(point.id) FROM point JOIN run ON run.id = run_id WHERE point.id IN (SELECT point_id FROM span))
  AND end_s > coalesce(:from_s, -9e9) AND start_s < coalesce(:to_s, 9e9)
GROUP BY stage, rank
