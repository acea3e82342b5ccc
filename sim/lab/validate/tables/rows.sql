SELECT
  (SELECT CASE WHEN min(counted) = max(counted) THEN max(counted) WHEN max(counted = 'images') THEN 'tokens, images' WHEN max(counted) IS NULL THEN 'tokens'
    ELSE 'tokens, samples' END FROM run WHERE loaded) AS "@",
  id, model, gpu AS "GPU|||1", strategy, gpus AS GPUs, iif(fitted, 'yes', 'no') AS "in fit|||2",
  measured_tokens_per_s_per_gpu AS "measured|@/s/GPU|1", predicted_tokens_per_s_per_gpu AS "predicted|@/s/GPU|1",
  100 * error AS "error|%|+1!", 100 * (predicted_ratio - measured_ratio) AS "ratio|points|+1|3",
  measured_peak_bytes / 1073741824 AS "measured peak|GiB|1|4", predicted_peak_bytes / 1073741824 AS "predicted peak|GiB|1|4",
  status || CASE WHEN NOT has_verdict OR oom = measured_oom THEN '' WHEN measured_oom THEN ', published: out of memory' ELSE ', published: fits' END AS status
FROM run WHERE status <> 'not_simulated' ORDER BY i;

--
