-- The newest months of training of the scenario; empty where there are none.
SELECT
  label AS "job", gpus AS "GPUs", printf('%.1f', checkpoint_interval_s / 60) AS "checkpoint every, min", printf('%.2f', 100 * goodput) AS "training, %",
  printf('%.2f', 100 * goodput_p05) AS "from", printf('%.2f', 100 * goodput_p95) AS "to", printf('%.2f', 100 * checkpoint_share) AS "checkpoints, %",
  printf('%.2f', 100 * lost_work_share) AS "lost work, %", printf('%.2f', 100 * detection_share) AS "detection, %", printf('%.2f', 100 * waiting_share) AS "waiting, %",
  printf('%.2f', 100 * restart_share) AS "restart, %", printf('%.2f', 100 * shrunk_share) AS "fewer hosts, %", printf('%.2f', 100 * coalesce(slowed_share, 0)) AS "slow hosts, %",
  printf('%.1f', tflops_per_gpu * goodput) AS "effective TFLOPS/GPU"
FROM main.goodput_point
WHERE goodput IS NOT NULL
  AND goodput_id = (SELECT max(id) FROM main.goodput WHERE scenario = (SELECT scenario FROM main.run WHERE id = (SELECT max(run_id) FROM shown)))
ORDER BY position
