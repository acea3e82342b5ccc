SELECT id AS run, model, strategy, gpus AS ">GPUs",
  iif(error IS NULL, iif(oom, 'out of memory', 'fits'), fixed(predicted_tokens_per_s_per_gpu, 0)) AS ">simulated tokens/s/GPU",
  iif(error IS NULL, iif(measured_oom, 'out of memory', iif(has_verdict, 'fits', '')), fixed(measured_tokens_per_s_per_gpu, 0)) AS ">published",
  coalesce(signed(100 * error, 1), '') AS ">error %",
  iif(smallest <> i AND measured_ratio IS NOT NULL, fixed(predicted_ratio, 3), '') AS ">of the smallest cluster",
  iif(smallest <> i AND measured_ratio IS NOT NULL, fixed(measured_ratio, 3), '') AS ">published"
FROM run WHERE source GLOB 'arXiv 2304.11277*' AND status <> 'not_simulated' ORDER BY i;
