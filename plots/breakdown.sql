-- Where the time of a step goes, of the newest `flopcast run SCENARIO --db`.

-- name: bars
SELECT
  row_number() OVER (ORDER BY position) AS place,
  printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  compute_alone_s AS compute,
  contention_s AS contention,
  exposed_comm_s AS exposed,
  host_bound_s AS host,
  other_idle_s AS idle,
  step_time_s AS step
FROM v_breakdown LEFT JOIN v_varied USING (run_id, point_id)
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
ORDER BY position

-- name: heading
SELECT scenario || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) AS setting
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_breakdown)
