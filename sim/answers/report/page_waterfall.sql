-- Of all explanations; a page takes those with its id, the first column.
SELECT
  explanation_id, cause AS "cause", iif(abs(lost_tflops_per_gpu) < 0.005, '0.00', printf('%+.2f', -lost_tflops_per_gpu)) AS "change, TFLOPS/GPU",
  iif(abs(lost_tflops_per_gpu) < 5e-5 * small_tflops_per_gpu, '0.00', printf('%+.2f', -100 * lost_tflops_per_gpu / small_tflops_per_gpu)) AS "of the small, %"
FROM explanation_part JOIN explanation ON explanation.id = explanation_id
ORDER BY explanation_id, position
