-- Why a job loses throughput as it grows, a panel a curve, nine at most: the newest `flopcast waterfall SCENARIO --db`.

-- name: steps
SELECT
  curve,
  position + 1 AS place,
  cause,
  small_tflops_per_gpu - coalesce(sum(lost_tflops_per_gpu) OVER (above ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS top,
  small_tflops_per_gpu - sum(lost_tflops_per_gpu) OVER above AS bottom,
  CASE WHEN abs(lost_tflops_per_gpu) < 0.005 THEN '0.00' ELSE printf('%+.2f', -lost_tflops_per_gpu) END AS label
FROM explanation_part
JOIN v_explanation ON v_explanation.id = explanation_id
WHERE command = (SELECT max(command) FROM v_explanation) AND curve <= 9
WINDOW above AS (PARTITION BY curve ORDER BY position)
ORDER BY curve, position

-- name: ends
SELECT curve, 0 AS place, small_gpus || ' GPUs' AS label, small_tflops_per_gpu AS tflops
FROM v_explanation WHERE command = (SELECT max(command) FROM v_explanation) AND curve <= 9
UNION ALL
SELECT curve, (SELECT max(position) + 2 FROM explanation_part WHERE explanation_id = id), large_gpus || ' GPUs', large_tflops_per_gpu
FROM v_explanation WHERE command = (SELECT max(command) FROM v_explanation) AND curve <= 9
ORDER BY 1, 2

-- name: panels
SELECT
  curve, -- the label in two lines: model, strategy and batch; what else distinguishes it
  iif(more > 0, substr(label, 1, batch + more), label) AS line_1,
  iif(more > 0, substr(label, batch + more + 3), ' ') AS line_2,
  places,
  max(small_tflops_per_gpu, large_tflops_per_gpu, highest) AS high,
  min(small_tflops_per_gpu, large_tflops_per_gpu, lowest) AS low
FROM (
  SELECT *, instr(substr(label, batch + 2), ', ') AS more
  FROM (SELECT *, instr(label, ', batch ') AS batch FROM v_explanation)
)
JOIN (
  SELECT explanation_id, max(position) + 2 AS places, max(level) AS highest, min(level) AS lowest
  FROM (
    SELECT explanation_id, position,
      small_tflops_per_gpu - sum(lost_tflops_per_gpu) OVER (PARTITION BY explanation_id ORDER BY position) AS level
    FROM explanation_part JOIN v_explanation ON v_explanation.id = explanation_id
  )
  GROUP BY explanation_id
) ON explanation_id = id
WHERE command = (SELECT max(command) FROM v_explanation) AND curve <= 9
ORDER BY curve

-- name: heading
SELECT min(scenario) || iif(count(*) > 9, printf(': 9 of %d curves (--set leaves some out)', count(*)), '') AS setting,
  -- of the curve that loses the largest share; max() takes the other columns from its row
  iif(count(*) > 1, label || ': ', '') || sentence AS sentence, max(1 - large_tflops_per_gpu / small_tflops_per_gpu) AS loss
FROM v_loss WHERE command = (SELECT max(command) FROM v_explanation)
