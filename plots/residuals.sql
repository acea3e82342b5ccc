-- What the newest `flopcast calibrate fit nccl --db` leaves: predicted over measured time by message size, fitted and left-out tables of nccl-tests.

-- name: points
SELECT use = 'fit' AS fitted, place, bytes, predicted_s / measured_s AS ratio
FROM v_nccl_point WHERE use <> 'bad' ORDER BY place, bytes

-- name: medians
WITH binned AS (
  SELECT use = 'fit' AS fitted, CAST(floor(log2(bytes) / 2) AS INTEGER) AS bin, predicted_s / measured_s AS ratio FROM v_nccl_point WHERE use <> 'bad'
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY fitted, bin ORDER BY ratio) AS place, count(*) OVER (PARTITION BY fitted, bin) AS n FROM binned
)
SELECT fitted, power(2, 2 * bin + 1) AS bytes, avg(ratio) AS ratio
FROM ranked WHERE n >= 4 AND place IN ((n + 1) / 2, (n + 2) / 2)
GROUP BY fitted, bin ORDER BY fitted, bin

-- name: heading
SELECT printf('%d sizes of %d fitted tables%s; lines: medians over a factor of 4',
    sum(use = 'fit'), count(DISTINCT CASE WHEN use = 'fit' THEN place END),
    CASE WHEN sum(use = 'left_out') > 0
      THEN printf(', %d of %d left out', sum(use = 'left_out'), count(DISTINCT CASE WHEN use = 'left_out' THEN place END))
      ELSE '' END) AS setting
FROM v_nccl_point WHERE use <> 'bad'
