-- The GEMM model against measured products, a panel a GPU and number format: the newest `flopcast calibrate fit --db`.

-- name: points
SELECT panel, use, 2e-12 * m * n * k * batch / measured_s AS measured, 2e-12 * m * n * k * batch / predicted_s AS predicted
FROM v_gemm_row
JOIN (
  SELECT gpu, dtype, row_number() OVER (ORDER BY gpu, dtype) AS panel FROM v_gemm_row GROUP BY gpu, dtype
) USING (gpu, dtype)
ORDER BY panel

-- name: panels
WITH ranked AS (
  SELECT gpu, dtype, abs(error) AS error, row_number() OVER (PARTITION BY gpu, dtype ORDER BY abs(error)) - 1 AS place,
    count(*) OVER (PARTITION BY gpu, dtype) - 1 AS last
  FROM v_gemm_row WHERE use = 'held out'
) -- quantiles between the two nearest, as the report of calibrate fit has them
SELECT printf('%s, %s', gpu, dtype) AS what,
  printf('%d held out: off by %.1f %% in the median, 90 %% of them by at most %.1f %%', count(*),
    100 * sum(error * max(0, 1 - abs(place - 0.5 * last))), 100 * sum(error * max(0, 1 - abs(place - 0.9 * last)))) AS error,
  (SELECT max(2e-12 * m * n * k * batch / measured_s) FROM v_gemm_row WHERE gpu = ranked.gpu AND dtype = ranked.dtype) AS most
FROM ranked GROUP BY gpu, dtype ORDER BY gpu, dtype

-- name: heading
SELECT printf('%d product%s, TFLOPS. Held out: every third shape. Narrow, under 64 rows or columns: outside the model', count(*), iif(count(*) = 1, '', 's')) AS setting
FROM v_gemm_row
