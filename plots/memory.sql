-- HBM of a GPU by category, of the newest `flopcast run SCENARIO --db`.

-- name: bars
SELECT
  row_number() OVER (ORDER BY position) AS place,
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
FROM v_memory LEFT JOIN v_varied USING (run_id, point_id)
WHERE run_id = (SELECT max(run_id) FROM v_memory)
ORDER BY position

-- name: heading
SELECT
  scenario || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) AS setting,
  (SELECT count(published_peak_allocated_bytes) FROM v_memory WHERE v_memory.run_id = v_scaling.run_id) AS published
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_memory)
