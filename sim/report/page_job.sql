-- What a point is, in the words of tables of runs (validate/nearest.h); degrees in the order TP, CP, EP, PP, DP.
WITH job AS (
  SELECT place, printf('%s %s, batch %d, %d GPU%s%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, '')) AS label,
    gpu, strategy, precision, model_params, gpus, json_extract(config, '$.stack.value') AS stack,
    coalesce(json_extract(config, '$.parallelism.tensor.value'), 1) AS tp, coalesce(json_extract(config, '$.parallelism.context.value'), 1) AS cp,
    coalesce(json_extract(config, '$.parallelism.expert.value'), 1) AS ep, coalesce(json_extract(config, '$.parallelism.pipeline.value'), 1) AS pp,
    json_extract(config, '$.model.value') AS path,
    coalesce((exposed_comm_s + coalesce(bubble_s, 0.0)) / step_time_s, 0.0) AS waiting
  FROM shown JOIN point ON point.id = point_id
)
SELECT label, gpu, coalesce(replace(replace(stack, rtrim(stack, replace(stack, '/', '')), ''), '.yaml', ''), ''), strategy, precision,
  model_params, gpus, tp, cp, ep, pp, gpus / (tp * cp * pp), path, waiting
FROM job
ORDER BY place
