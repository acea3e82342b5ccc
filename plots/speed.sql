-- Tokens (or images, samples) a second of each GPU, a bar a point, of the newest `flopcast run SCENARIO --db`: for sweeps of settings.

-- name: bars
SELECT
  row_number() OVER (ORDER BY drawn.position) AS place,
  printf('%s %s, batch %d, %d GPU%s', drawn.model, drawn.strategy, drawn.micro_batch, drawn.gpus, iif(drawn.gpus = 1, '', 's')) AS label,
  coalesce(varied, '-') AS varied,
  coalesce(drawn.tokens_per_s_per_gpu, 0) AS speed,
  tokens_per_s_per_gpu_p05 AS low,
  tokens_per_s_per_gpu_p95 AS high,
  coalesce(tokens_per_s_per_gpu_low, tokens_per_s_per_gpu_p05) AS lowest,
  coalesce(tokens_per_s_per_gpu_high, tokens_per_s_per_gpu_p95) AS highest,
  max(coalesce(drawn.tokens_per_s_per_gpu, 0), coalesce(tokens_per_s_per_gpu_high, tokens_per_s_per_gpu_p95, 0)) AS beyond,
  iif(drawn.status = 'oom', 'OOM', printf('%.4g, MFU %.1f %%', drawn.tokens_per_s_per_gpu, 100 * drawn.mfu)) AS note
FROM v_scaling AS drawn LEFT JOIN v_varied USING (run_id, point_id) LEFT JOIN v_band USING (run_id, point_id)
WHERE run_id = (SELECT max(run_id) FROM v_scaling)
ORDER BY drawn.position

-- name: heading
SELECT
  scenario || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) AS setting,
  iif(min(seq_len) > 1, 'tokens/s', iif(max(seq_len) = 1, 'images/s or samples/s', 'tokens/s, of images images/s')) AS unit,
  (SELECT count(*) FROM v_band WHERE v_band.run_id = v_scaling.run_id) AS sampled
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_scaling)
