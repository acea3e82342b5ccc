-- The GEMM model against measured products, a panel a GPU and number format: the newest `flopcast calibrate fit --db`.

-- name: points
SELECT panel, use, 2e-12 * m * n * k * batch / measured_s AS measured, 2e-12 * m * n * k * batch / predicted_s AS predicted
FROM v_gemm_row
JOIN (
  SELECT gpu, dtype, row_number() OVER (ORDER BY gpu, dtype) AS panel FROM v_gemm_row GROUP BY gpu, dtype
) USING (gpu, dtype)
ORDER BY panel

-- name: panels
SELECT printf('%s, %s', gpu, dtype) AS what,
  printf('%d held out: off by %s %% in the median, 90 %% of them by at most %s %%', count(error), -- as the report of calibrate fit has them
    fixed(100 * quantile(abs(error), 0.5), 1), fixed(100 * quantile(abs(error), 0.9), 1)) AS error,
  (SELECT max(2e-12 * m * n * k * batch / measured_s) FROM v_gemm_row WHERE gpu = held_out.gpu AND dtype = held_out.dtype) AS most
FROM v_gemm_row AS held_out WHERE use = 'held out' GROUP BY gpu, dtype ORDER BY gpu, dtype

-- name: heading
SELECT printf('%d product%s, TFLOPS. Held out: every third shape. Narrow, under 64 rows or columns: outside the model', count(*), iif(count(*) = 1, '', 's')) AS setting
FROM v_gemm_row
