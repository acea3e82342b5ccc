SELECT
  printf('%s %s, batch %d, %d GPU%s%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, '')) AS "point",
  iif(max(parameters_bytes) OVER () > 0, printf('%.2f', parameters_bytes / 0x40000000), NULL) AS "parameters",
  iif(max(gradients_bytes) OVER () > 0, printf('%.2f', gradients_bytes / 0x40000000), NULL) AS "gradients",
  iif(max(optimizer_bytes) OVER () > 0, printf('%.2f', optimizer_bytes / 0x40000000), NULL) AS "optimizer",
  iif(max(activations_bytes) OVER () > 0, printf('%.2f', activations_bytes / 0x40000000), NULL) AS "activations",
  iif(max(gathered_bytes) OVER () > 0, printf('%.2f', gathered_bytes / 0x40000000), NULL) AS "gathered",
  iif(max(buffers_bytes) OVER () > 0, printf('%.2f', buffers_bytes / 0x40000000), NULL) AS "buffers",
  iif(max(context_bytes) OVER () > 0, printf('%.2f', context_bytes / 0x40000000), NULL) AS "context",
  iif(max(nccl_bytes) OVER () > 0, printf('%.2f', nccl_bytes / 0x40000000), NULL) AS "nccl",
  printf('%.1f', hbm_capacity_bytes / 0x40000000) AS "capacity"
FROM shown JOIN v_memory USING (point_id)
ORDER BY place
