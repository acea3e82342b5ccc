-- The newest months of training of the scenario; empty where there are none.
SELECT
  label AS "job", gpus AS "GPUs", printf('%.1f', checkpoint_interval_s / 60) AS "checkpoint every, min", printf('%.2f', 100 * goodput) AS "training, %",
  printf('%.2f', 100 * goodput_p05) AS "from", printf('%.2f', 100 * goodput_p95) AS "to", printf('%.2f', 100 * checkpoint) AS "checkpoints, %",
  printf('%.2f', 100 * lost_work) AS "lost work, %", printf('%.2f', 100 * detection) AS "detection, %", printf('%.2f', 100 * waiting) AS "waiting, %",
  printf('%.2f', 100 * restart) AS "restart, %", printf('%.2f', 100 * shrunk) AS "fewer hosts, %", printf('%.2f', 100 * coalesce(slowed, 0)) AS "slow hosts, %",
  printf('%.1f', step_tflops_per_gpu * goodput) AS "effective TFLOPS/GPU"
FROM main.goodput_point
WHERE goodput IS NOT NULL
  AND goodput_id = (SELECT max(id) FROM main.goodput WHERE scenario = (SELECT scenario FROM main.run WHERE id = (SELECT max(run_id) FROM shown)))
ORDER BY position
