-- TFLOPS per GPU against the number of GPUs (--x: another setting): the newest `flopcast run SCENARIO --db`, and published ones that it names.

-- name: points
SELECT
  panel, shown.curve, color, x, tflops_per_gpu AS y, iif(status = 'oom', 0, NULL) AS oom, published_tflops_per_gpu AS published, NULL AS capacity,
  -- of a few curves without samples: where 90 % of measured runs are, of the first; with one's own measurements given these
  coalesce(tflops_per_gpu_p05, iif(few AND color = 1, coalesce(tflops_per_gpu * given.low, tflops_per_gpu_low), NULL)) AS low,
  coalesce(tflops_per_gpu_p95, iif(few AND color = 1, coalesce(tflops_per_gpu * given.high, tflops_per_gpu_high), NULL)) AS high,
  tflops_per_gpu * given.middle AS given, tflops_per_gpu * given.measured AS measured
FROM shown JOIN point ON point.id = point_id LEFT JOIN band USING (point_id) LEFT JOIN given USING (point_id),
  (SELECT max(color) <= 2 AND NOT EXISTS (SELECT * FROM band WHERE point_id IN (SELECT point_id FROM shown)) AS few FROM shown)
WHERE figure_room((SELECT max(panel) FROM shown), 36, 'panels of curves', ', or another axis with --x')
ORDER BY panel, shown.curve, x, place

-- name: legend
-- Of one panel with the change from the first to the last value of the x axis.
SELECT color, iif(curve_label = '', 'all', curve_label)
  || iif(panels = 1 AND number AND with_value > 1 AND first > 0, printf(': %+.1f %%', 100 * (last / first - 1)), '') AS label
FROM (
  SELECT color, curve_label, max(panel) OVER () AS panels, count(tflops_per_gpu) OVER same AS with_value,
    first_value(tflops_per_gpu) OVER same AS first, last_value(tflops_per_gpu) OVER same AS last
  FROM shown JOIN point ON point.id = point_id
  WINDOW same AS (PARTITION BY color, panel, tflops_per_gpu IS NULL ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
  ORDER BY tflops_per_gpu IS NULL
), shown_axis
GROUP BY color

-- name: panels
SELECT panel, min(panel_label) AS label FROM shown GROUP BY panel

-- name: ticks
SELECT x, text FROM shown_tick

-- name: axis
SELECT title, low, high, logarithmic, number, n FROM shown_axis

-- name: heading
SELECT (SELECT group_concat(scenario, ', ') FROM (SELECT DISTINCT scenario FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id)) || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) || coalesce(', ' || common, '')
    || coalesce('; where ' || condition, '') AS setting,
  coalesce(max(published_source), '') AS source,
  (SELECT count(*) FROM band WHERE point_id IN (SELECT point_id FROM shown)) AS sampled,
  (SELECT count(*) FROM given WHERE point_id IN (SELECT point_id FROM shown)) AS given
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id, shown_axis
HAVING count(*) > 0
