SELECT
  model AS "model", strategy AS "strategy", micro_batch AS "batch of a GPU", varied AS "settings", gpus AS "GPUs",
  iif(status = 'oom', 'out of memory', NULL) AS "status",
  iif(tflops_per_gpu IS NULL, NULL, printf('%.2f', tflops_per_gpu)) AS "TFLOPS/GPU",
  iif(published_tflops_per_gpu IS NULL, NULL, printf('%.2f', published_tflops_per_gpu)) AS "published",
  iif(tflops_per_gpu / published_tflops_per_gpu IS NULL, NULL, printf('%+.1f', 100 * (tflops_per_gpu / published_tflops_per_gpu - 1))) AS "deviation, %",
  iif(step_time_s IS NULL, NULL, printf('%.4f', step_time_s)) AS "step, s",
  CASE WHEN tokens_per_s_per_gpu IS NULL THEN NULL WHEN tokens_per_s_per_gpu < 1000 THEN printf('%.4g', tokens_per_s_per_gpu)
    ELSE printf('%,d', CAST(round(tokens_per_s_per_gpu) AS INTEGER)) END AS "tokens/s/GPU",
  iif(mfu IS NULL, NULL, printf('%.1f', 100 * mfu)) AS "MFU, %",
  iif(exposed_comm_s IS NULL, NULL, printf('%.1f', 100 * exposed_comm_s / step_time_s)) AS "exposed comm., %",
  iif(bubble_s IS NULL, NULL, printf('%.1f', 100 * bubble_s / step_time_s)) AS "bubble, %",
  iif(peak_allocated_bytes IS NULL, NULL, printf('%.1f', peak_allocated_bytes / 0x40000000)) AS "peak, GiB",
  iif(peak_reserved_bytes IS NULL, NULL, printf('%.1f', peak_reserved_bytes / 0x40000000)) AS "reserved, GiB",
  iif(shortfall_bytes IS NULL, NULL, printf('%.1f', shortfall_bytes / 0x40000000)) AS "short of, GiB"
FROM shown JOIN point ON point.id = point_id
ORDER BY place
