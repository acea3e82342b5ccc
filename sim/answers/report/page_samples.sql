SELECT
  printf('%s %s, batch %d, %d GPU%s%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, '')) AS "point", samples AS "samples",
  iif(tflops_per_gpu_p50 IS NULL, NULL, printf('%.2f', tflops_per_gpu_p50)) AS "median",
  iif(tflops_per_gpu_p05 IS NULL, NULL, printf('%.2f', tflops_per_gpu_p05)) AS "from",
  iif(tflops_per_gpu_p95 IS NULL, NULL, printf('%.2f', tflops_per_gpu_p95)) AS "to"
FROM shown JOIN point ON point.id = point_id JOIN band USING (point_id)
ORDER BY place
