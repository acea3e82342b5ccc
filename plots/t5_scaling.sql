-- TFLOPS per GPU against the number of GPUs: Figure 7c of the FSDP paper and its simulation: `flopcast run scenarios/t5_scaling.yaml --db`. Any other: `flopcast plot scaling`.

-- A curve is a batch. The scenario simulates it under readings of what the paper leaves open: the first is drawn, all span the band.
-- name: points
SELECT
  dense_rank() OVER (ORDER BY micro_batch) AS curve,
  gpus,
  max(tflops_per_gpu) FILTER (WHERE reading = 1) AS simulated,
  min(tflops_per_gpu) AS reading_low,
  max(tflops_per_gpu) AS reading_high,
  max(published_tflops_per_gpu) AS published
FROM (
  SELECT *, dense_rank() OVER (PARTITION BY micro_batch ORDER BY first) AS reading
  FROM (
    SELECT *, min(position) OVER (PARTITION BY curve) AS first
    FROM v_scaling
    WHERE scenario = 't5_scaling'
  )
)
GROUP BY micro_batch, gpus
ORDER BY curve, gpus

-- name: bands
SELECT
  dense_rank() OVER (ORDER BY micro_batch) AS curve,
  gpus,
  tflops_per_gpu_p05 AS low,
  tflops_per_gpu_p50 AS median,
  tflops_per_gpu_p95 AS high,
  samples
FROM (
  SELECT *, dense_rank() OVER (PARTITION BY micro_batch ORDER BY first) AS reading
  FROM (
    SELECT *, min(position) OVER (PARTITION BY curve) AS first
    FROM v_band
    WHERE scenario = 't5_scaling'
  )
)
WHERE reading = 1
ORDER BY curve, gpus

-- name: curves
SELECT
  printf('batch %d, simulated: %+.1f %%%s', micro_batch, -100 * max(loss) FILTER (WHERE reading = 1),
    iif(count(*) > 1, printf(' (%+.1f to %+.1f %% by all readings)', -100 * min(loss), -100 * max(loss)), '')) AS simulated,
  printf('batch %d, published: %+.1f %%', micro_batch, -100 * max(published_loss)) AS published,
  min(smallest) || ' to ' || max(gpus) || ' GPUs' AS span
FROM (
  SELECT *, dense_rank() OVER (PARTITION BY micro_batch ORDER BY first) AS reading
  FROM (
    SELECT *, min(position) OVER same AS first, min(gpus) OVER same AS smallest, max(gpus) OVER same AS largest
    FROM v_scaling
    WHERE scenario = 't5_scaling'
    WINDOW same AS (PARTITION BY curve)
  )
)
WHERE gpus = largest
GROUP BY micro_batch
ORDER BY micro_batch

-- name: heading
SELECT
  model || ', ' || strategy || ', BF16, ' || cluster AS setting,
  coalesce(published_source, 'none') AS source,
  count(DISTINCT curve) / count(DISTINCT micro_batch) AS readings
FROM v_scaling
WHERE scenario = 't5_scaling'
