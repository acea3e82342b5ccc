-- TFLOPS per GPU against the number of GPUs: the curves of the newest `flopcast run SCENARIO --db`, and published ones that it names.

-- name: points
SELECT
  dense_rank() OVER (ORDER BY first) AS curve,
  gpus,
  tflops_per_gpu AS simulated,
  published_tflops_per_gpu AS published
FROM (
  SELECT *, min(position) OVER (PARTITION BY curve) AS first
  FROM v_scaling
  WHERE run_id = (SELECT max(run_id) FROM v_scaling) AND tflops_per_gpu IS NOT NULL
)
ORDER BY 1, gpus

-- name: bands
SELECT
  dense_rank() OVER (ORDER BY first) AS curve,
  gpus,
  tflops_per_gpu_p05 AS low,
  tflops_per_gpu_p95 AS high,
  coalesce(tflops_per_gpu_low, tflops_per_gpu_p05) AS lowest,
  coalesce(tflops_per_gpu_high, tflops_per_gpu_p95) AS highest
FROM (
  SELECT v_band.*, min(position) OVER (PARTITION BY curve) AS first
  FROM v_band
  WHERE run_id = (SELECT max(run_id) FROM v_scaling) AND tflops_per_gpu IS NOT NULL
)
ORDER BY 1, gpus

-- What all curves have in common is left out of their names.
-- name: curves
WITH drawn AS (
  SELECT *, min(position) OVER same AS first, min(gpus) OVER same AS smallest, max(gpus) OVER same AS largest
  FROM v_scaling
  WHERE run_id = (SELECT max(run_id) FROM v_scaling) AND tflops_per_gpu IS NOT NULL
  WINDOW same AS (PARTITION BY curve)
)
SELECT
  printf('%s %s, batch %d%s', model, strategy, micro_batch, coalesce(', ' || varied, ''))
  || iif(smallest < largest, printf(': %+.1f %%', -100 * loss), '') AS label
FROM drawn LEFT JOIN v_varied USING (run_id, point_id)
WHERE gpus = largest
ORDER BY first

-- name: heading
SELECT
  scenario || ': ' || iif(count(DISTINCT cluster) > 1, 'several clusters', min(cluster)) AS setting,
  coalesce(max(published_source), '') AS source
FROM v_scaling
WHERE run_id = (SELECT max(run_id) FROM v_scaling)
