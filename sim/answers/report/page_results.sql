-- What is the same in all points stands in the answer above. memory: as in the answer of `flopcast run`.
SELECT
  iif(models = 1, NULL, model) AS "model", iif(strategies = 1, NULL, strategy) AS "strategy", iif(batches = 1, NULL, micro_batch) AS "batch of a GPU",
  varied AS "settings", gpus AS "GPUs",
  with_interval(tflops_per_gpu, tflops_per_gpu_low, tflops_per_gpu_high, 2) AS "TFLOPS/GPU (90 %)",
  iif(published_tflops_per_gpu IS NULL, NULL, printf('%.2f', published_tflops_per_gpu)) AS "published",
  iif(tflops_per_gpu / published_tflops_per_gpu IS NULL, NULL, printf('%+.1f', 100 * (tflops_per_gpu / published_tflops_per_gpu - 1))) AS "deviation, %",
  with_interval(tokens_per_s_per_gpu, tokens_per_s_per_gpu_low, tokens_per_s_per_gpu_high, iif(tokens_per_s_per_gpu < 100, 1, 0)) AS "tokens/s/GPU (90 %)",
  iif(mfu IS NULL, NULL, printf('%.1f', 100 * mfu)) AS "MFU, %",
  iif(step_time_s IS NULL, NULL, printf('%.4g', step_time_s)) AS "step, s",
  iif(exposed_comm_s IS NULL, NULL, printf('%.1f', 100 * exposed_comm_s / step_time_s)) AS "exposed comm., %",
  iif(coalesce(bubble_s, 0) = 0, NULL, printf('%.1f', 100 * bubble_s / step_time_s)) AS "bubble, %",
  iif(peak_allocated_bytes IS NULL, NULL, printf('%.1f', peak_allocated_bytes / 0x40000000)) AS "peak, GiB",
  iif(peak_reserved_bytes IS NULL, NULL, printf('%.1f', peak_reserved_bytes / 0x40000000)) AS "reserved, GiB",
  verdict AS "memory"
FROM (
  SELECT shown.place, varied, point.*, models, strategies, batches, verdict
  FROM shown JOIN point ON point.id = shown.point_id JOIN v_verdict USING (point_id),
    (SELECT count(DISTINCT model) AS models, count(DISTINCT strategy) AS strategies, count(DISTINCT micro_batch) AS batches
      FROM shown JOIN point ON point.id = point_id)
)
ORDER BY place
