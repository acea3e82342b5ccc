-- TFLOPS per GPU by model size and strategy: Figure 6a of the FSDP paper and its simulation: `flopcast run scenarios/t5_model_scale.yaml --db`.

-- name: bars
SELECT
  dense_rank() OVER (ORDER BY model_params) AS model,
  dense_rank() OVER (ORDER BY strategy = 'DDP', strategy = 'NO_SHARD', strategy LIKE '%HYBRID%', strategy) AS strategy,
  tflops_per_gpu AS simulated,
  max(coalesce(tflops_per_gpu, 0), coalesce(published_tflops_per_gpu, 0)) AS top,
  CASE status WHEN 'oom' THEN 'OOM' ELSE printf('%.1f', tflops_per_gpu) END AS label,
  published_tflops_per_gpu AS published,
  CASE WHEN published_oom THEN 'OOM' ELSE coalesce(printf('%.1f', published_tflops_per_gpu), '') END AS published_label
FROM v_scaling
WHERE scenario = 't5_model_scale' AND figure_room( -- a bar shows one point
  (SELECT max(n) FROM (SELECT count(*) AS n FROM v_scaling WHERE scenario = 't5_model_scale' GROUP BY model_params, strategy)),
  1, 'points of a model and strategy', ', or draw another figure')
ORDER BY strategy, model

-- name: strategies
SELECT DISTINCT strategy
FROM v_scaling
WHERE scenario = 't5_model_scale'
ORDER BY strategy = 'DDP', strategy = 'NO_SHARD', strategy LIKE '%HYBRID%', strategy

-- name: models
SELECT DISTINCT printf('%s (%s)', model, precision) AS label
FROM v_scaling
WHERE scenario = 't5_model_scale'
ORDER BY model_params

-- name: heading
SELECT
  printf('micro-batch %s, %d GPUs, %s', replace(group_concat(DISTINCT micro_batch), ',', ' and '), gpus, cluster) AS setting,
  coalesce(max(published_source) FILTER (WHERE NOT published_oom), 'none') AS source
FROM v_scaling
WHERE scenario = 't5_model_scale'
