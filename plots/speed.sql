-- Tokens (or images, samples) a second of each GPU, of the newest `flopcast run SCENARIO --db`: a bar a point, of more than 16 the ends of each curve; curves over a setting with --x, and of more than 100 points.

-- name: heading
SELECT
  (SELECT group_concat(scenario, ', ') FROM (SELECT DISTINCT scenario FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id)) || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) || coalesce(', ' || iif(asked OR count(*) > 100, common, NULL), '') || coalesce('; where ' || condition, '') || iif(asked OR count(*) > 100, '', coalesce('; ' || (SELECT min(chosen) FROM shown_bar), '')) AS setting,
  iif(min(seq_len) > 1, 'tokens/s', iif(max(seq_len) = 1, 'images/s or samples/s', 'tokens/s, of images images/s')) AS unit,
  (SELECT count(*) FROM band WHERE point_id IN (SELECT point_id FROM shown)) AS sampled,
  asked OR count(*) > 100 AS curves
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id, shown_axis
HAVING count(*) > 0

-- name: bars
SELECT
  shown_bar.place,
  printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  coalesce(tokens_per_s_per_gpu, 0) AS speed,
  tokens_per_s_per_gpu_p05 AS low,
  tokens_per_s_per_gpu_p95 AS high,
  max(coalesce(tokens_per_s_per_gpu, 0), coalesce(tokens_per_s_per_gpu_p95, 0)) AS beyond,
  iif(status = 'oom', 'OOM', printf('%s, MFU %.1f %%', iif(tokens_per_s_per_gpu < 1000, printf('%.4g', tokens_per_s_per_gpu), printf('%,d', round(tokens_per_s_per_gpu))), 100 * mfu)) AS note
FROM shown JOIN shown_bar USING (point_id) JOIN point ON point.id = point_id LEFT JOIN band USING (point_id)
WHERE (SELECT count(*) FROM shown) <= 100
ORDER BY shown_bar.place

-- name: points
SELECT
  panel, shown.curve, color, x, tokens_per_s_per_gpu AS y, iif(status = 'oom', 0, NULL) AS oom, NULL AS published, NULL AS capacity,
  tokens_per_s_per_gpu_p05 AS low, tokens_per_s_per_gpu_p95 AS high
FROM shown JOIN point ON point.id = point_id LEFT JOIN band USING (point_id), shown_axis
WHERE (asked OR (SELECT count(*) FROM shown) > 100) AND figure_room((SELECT max(panel) FROM shown), 36, 'panels of curves', ', or another axis with --x')
ORDER BY panel, shown.curve, x, place

-- name: legend
SELECT color, iif(min(curve_label) = '', 'all', min(curve_label)) AS label FROM shown GROUP BY color

-- name: panels
SELECT panel, min(panel_label) AS label FROM shown GROUP BY panel

-- name: ticks
SELECT x, text FROM shown_tick

-- name: axis
SELECT title, low, high, logarithmic, number, n FROM shown_axis
