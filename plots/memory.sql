-- HBM of a GPU by category, of the newest `flopcast run SCENARIO --db`: a bar a point, of more than 16 the ends of each curve; the sum over a setting with --x, and of more than 100 points.

-- name: heading
SELECT
  (SELECT group_concat(scenario, ', ') FROM (SELECT DISTINCT scenario FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id)) || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) || coalesce(', ' || iif(asked OR count(*) > 100, common, NULL), '') || coalesce('; where ' || condition, '') || iif(asked OR count(*) > 100, '', coalesce('; ' || (SELECT min(chosen) FROM shown_bar), '')) AS setting,
  count(published_peak_allocated_bytes) AS published,
  asked OR count(*) > 100 AS curves,
  coalesce(max(published_source), '') || ' (allocated, without context and NCCL)' AS source
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id, shown_axis
HAVING count(*) > 0

-- name: bars
SELECT
  shown_bar.place,
  printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  parameters_bytes / 0x40000000 AS parameters,
  gradients_bytes / 0x40000000 AS gradients,
  optimizer_bytes / 0x40000000 AS optimizer,
  activations_bytes / 0x40000000 AS activations,
  gathered_bytes / 0x40000000 AS gathered,
  buffers_bytes / 0x40000000 AS buffers,
  context_bytes / 0x40000000 AS context,
  nccl_bytes / 0x40000000 AS nccl,
  hbm_capacity_bytes / 0x40000000 AS capacity,
  published_peak_allocated_bytes / 0x40000000 AS published,
  CASE status WHEN 'oom' THEN iif(shortfall_bytes > 0x6666666, printf('OOM: %.1f GiB short', shortfall_bytes / 0x40000000),
    iif(shortfall_bytes > 0, printf('OOM: %.0f MiB short', shortfall_bytes / 0x100000), 'OOM: gaps')) ELSE '' END AS note
FROM shown JOIN shown_bar USING (point_id) JOIN v_memory USING (point_id)
WHERE (SELECT count(*) FROM shown) <= 100
ORDER BY shown_bar.place

-- name: points
-- The cross of a point out of memory stands at what it would need.
SELECT panel, shown.curve, color, x, iif(status = 'ok', whole, NULL) AS y, iif(status = 'oom', whole, NULL) AS oom,
  published_peak_allocated_bytes / 0x40000000 AS published, hbm_capacity_bytes / 0x40000000 AS capacity,
  NULL AS low, NULL AS high
FROM shown JOIN point ON point.id = point_id
  JOIN (SELECT point_id, sum(coalesce(peak_bytes, required_bytes)) / 0x40000000 AS whole FROM memory GROUP BY point_id) USING (point_id), shown_axis
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
