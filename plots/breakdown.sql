-- Where the time of a step goes, of the newest `flopcast run SCENARIO --db` that is not all out of memory: a bar a point, of more than 16 the ends of each curve; with --x columns over a setting, a panel a curve.

-- name: bars
SELECT
  row_number() OVER (ORDER BY place) AS place,
  printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  part_1_s, part_2_s, part_3_s, part_4_s, part_5_s, part_6_s, part_7_s, part_8_s,
  step_time_s AS step,
  shown.curve, dense_rank() OVER (ORDER BY x) AS x
FROM shown JOIN v_step USING (point_id), shown_axis
WHERE iif(asked, figure_room((SELECT max(curve) FROM shown), 24, 'panels', ', or another axis with --x'), point_id IN (SELECT point_id FROM shown_bar) AND figure_room((SELECT count(*) FROM shown_bar), 100, 'bars', ', or another axis with --x'))
ORDER BY place

-- name: panels
SELECT DISTINCT curve, panel_label || iif(panel_label = '' OR curve_label = '', '', ', ') || curve_label AS label FROM shown ORDER BY curve

-- name: ticks
SELECT DISTINCT dense_rank() OVER (ORDER BY x) AS x, x_text AS text FROM shown JOIN v_step USING (point_id)

-- Of what no bar shows there is no name.
-- name: parts
SELECT part, name, (SELECT max(CASE part WHEN 1 THEN part_1_s WHEN 2 THEN part_2_s WHEN 3 THEN part_3_s WHEN 4 THEN part_4_s
    WHEN 5 THEN part_5_s WHEN 6 THEN part_6_s WHEN 7 THEN part_7_s ELSE part_8_s END / step_time_s) > 5e-4 FROM shown JOIN v_step USING (point_id)) AS seen
FROM step_part ORDER BY part

-- name: heading
SELECT
  (SELECT group_concat(scenario, ', ') FROM (SELECT DISTINCT scenario FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id)) || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) || coalesce(', ' || common, '') || coalesce('; where ' || condition, '') || iif(asked, '', coalesce('; ' || (SELECT min(chosen) FROM shown_bar), '')) AS setting,
  -- of the point whose kernels have the smallest share of their step
  (SELECT printf('%s %s, batch %d, %d GPU%s%s: %s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, ''), sentence)
    FROM shown JOIN v_step USING (point_id) ORDER BY part_1_s / step_time_s, place LIMIT 1) AS sentence,
  asked, title,
  count(*) FILTER (WHERE status = 'oom') AS ooms
FROM shown JOIN point ON point.id = point_id JOIN run ON run.id = point.run_id, shown_axis
