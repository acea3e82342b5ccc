-- Where the time of a step goes, of the newest `flopcast run SCENARIO --db`.

-- name: bars
SELECT
  row_number() OVER (ORDER BY position) AS place,
  printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  part_1_s, part_2_s, part_3_s, part_4_s, part_5_s, part_6_s, part_7_s,
  step_time_s AS step
FROM v_step LEFT JOIN v_varied USING (run_id, point_id)
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
ORDER BY position

-- name: parts
SELECT name FROM step_part ORDER BY part

-- name: heading
SELECT
  scenario || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) AS setting,
  -- of the point whose kernels have the smallest share of their step
  (SELECT sentence FROM v_step WHERE v_step.run_id = v_scaling.run_id ORDER BY part_1_s / step_time_s, position LIMIT 1) AS sentence
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
