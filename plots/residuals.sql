-- What the newest `flopcast calibrate fit nccl --db` leaves: predicted over measured time by message size, fitted and left-out tables of nccl-tests.

-- name: points
SELECT use = 'fit' AS fitted, place, bytes, predicted_s / measured_s AS ratio
FROM v_nccl_point WHERE use <> 'bad' ORDER BY place, bytes

-- name: medians
SELECT use = 'fit' AS fitted, power(2, 2 * floor(log2(bytes) / 2) + 1) AS bytes, quantile(predicted_s / measured_s, 0.5) AS ratio
FROM v_nccl_point WHERE use <> 'bad' GROUP BY 1, 2 HAVING count(*) >= 4 ORDER BY 1, 2

-- name: heading
SELECT printf('%d sizes of %d fitted tables%s; lines: medians over a factor of 4',
    sum(use = 'fit'), count(DISTINCT CASE WHEN use = 'fit' THEN place END),
    CASE WHEN sum(use = 'left_out') > 0
      THEN printf(', %d of %d left out', sum(use = 'left_out'), count(DISTINCT CASE WHEN use = 'left_out' THEN place END))
      ELSE '' END) AS setting
FROM v_nccl_point WHERE use <> 'bad'
