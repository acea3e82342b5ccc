-- Why a job loses throughput as it grows: the newest explanation of all (`flopcast explain --db`).

-- name: steps
SELECT
  position + 1 AS place,
  cause,
  small_tflops_per_gpu - coalesce(sum(lost_tflops_per_gpu) OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS top,
  small_tflops_per_gpu - sum(lost_tflops_per_gpu) OVER (ORDER BY position) AS bottom,
  CASE WHEN abs(lost_tflops_per_gpu) < 0.005 THEN '0.00' ELSE printf('%+.2f', -lost_tflops_per_gpu) END AS label
FROM explanation_part
JOIN explanation ON explanation.id = explanation_id
WHERE explanation_id = (SELECT max(id) FROM explanation)
ORDER BY position

-- name: ends
SELECT 0 AS place, small_gpus || ' GPUs' AS label, small_tflops_per_gpu AS tflops
FROM explanation WHERE id = (SELECT max(id) FROM explanation)
UNION ALL
SELECT (SELECT max(position) + 2 FROM explanation_part), large_gpus || ' GPUs', large_tflops_per_gpu
FROM explanation WHERE id = (SELECT max(id) FROM explanation)

-- name: heading
SELECT scenario || ': ' || label AS setting
FROM explanation WHERE id = (SELECT max(id) FROM explanation)
