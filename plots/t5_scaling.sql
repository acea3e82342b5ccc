-- TFLOPS per GPU against the number of GPUs: Figure 7c of the FSDP paper and its simulation: `flopcast run scenarios/t5_scaling.yaml --db`. Any other: `flopcast plot scaling`.

-- name: points
SELECT
  dense_rank() OVER (ORDER BY micro_batch, curve) AS curve,
  gpus,
  tflops_per_gpu AS simulated,
  published_tflops_per_gpu AS published
FROM v_scaling
WHERE scenario = 't5_scaling'
ORDER BY curve, gpus

-- name: bands
SELECT
  dense_rank() OVER (ORDER BY micro_batch, curve) AS curve,
  gpus,
  tflops_per_gpu_p05 AS low,
  tflops_per_gpu_p50 AS median,
  tflops_per_gpu_p95 AS high,
  coalesce(tflops_per_gpu_low, tflops_per_gpu_p05) AS lowest,
  coalesce(tflops_per_gpu_high, tflops_per_gpu_p95) AS highest,
  samples
FROM v_band
WHERE scenario = 't5_scaling'
ORDER BY curve, gpus

-- name: curves
SELECT
  printf('batch %d, simulated: %+.1f %%', micro_batch, -100 * loss) AS simulated,
  printf('batch %d, published: %+.1f %%', micro_batch, -100 * published_loss) AS published,
  smallest || ' to ' || gpus || ' GPUs' AS span
FROM (
  SELECT *, min(gpus) OVER same AS smallest, max(gpus) OVER same AS largest
  FROM v_scaling
  WHERE scenario = 't5_scaling'
  WINDOW same AS (PARTITION BY curve)
)
WHERE gpus = largest
ORDER BY dense_rank() OVER (ORDER BY micro_batch, curve)

-- name: heading
SELECT
  model || ', ' || strategy || ', ' || precision || ', ' || cluster AS setting,
  coalesce(published_source, 'none') AS source
FROM v_scaling
WHERE scenario = 't5_scaling'
ORDER BY published_source IS NULL
LIMIT 1
