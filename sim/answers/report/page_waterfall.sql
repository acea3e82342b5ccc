-- The parts of each curve of the newest command, below what the curve is.
SELECT
  printf('%s, %d to %d GPUs: %.2f to %.2f TFLOPS/GPU', label, small_gpus, large_gpus, small_tflops_per_gpu, large_tflops_per_gpu) AS caption,
  cause AS "cause", iif(abs(lost_tflops_per_gpu) < 0.005, '0.00', printf('%+.2f', -lost_tflops_per_gpu)) AS "change, TFLOPS/GPU",
  iif(abs(lost_tflops_per_gpu) < 5e-5 * small_tflops_per_gpu, '0.00', printf('%+.2f', -100 * lost_tflops_per_gpu / small_tflops_per_gpu)) AS "of the small, %"
FROM explanation_part JOIN v_explanation ON v_explanation.id = explanation_id
WHERE command = (SELECT max(command) FROM v_explanation)
ORDER BY explanation_id, position
