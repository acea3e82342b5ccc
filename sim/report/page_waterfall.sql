-- Of all explanations; a page takes those with its id, the first column.
SELECT
  explanation_id, cause AS "cause", printf('%+.2f', -lost_tflops_per_gpu) AS "change, TFLOPS/GPU",
  printf('%+.2f', -100 * lost_tflops_per_gpu / small_tflops_per_gpu) AS "of the small, %"
FROM explanation_part JOIN explanation ON explanation.id = explanation_id
ORDER BY explanation_id, position
