-- Predicted against measured speed of published runs, and the error against the number of GPUs: the newest `flopcast validate --db`.

-- name: runs
SELECT
  dense_rank() OVER (ORDER BY used_in_fit = '', source) AS place,
  gpus,
  measured_tokens_per_s_per_gpu AS measured,
  predicted_tokens_per_s_per_gpu AS predicted,
  100 * error AS error
FROM v_validation
WHERE error IS NOT NULL
ORDER BY place, gpus

-- name: sources
SELECT
  printf('%s%s (%d)', substr(source, 1, 44), CASE WHEN used_in_fit = '' THEN '' ELSE ', in fit' END, count(*)) AS label,
  used_in_fit = '' AS unseen
FROM v_validation
WHERE error IS NOT NULL
GROUP BY used_in_fit = '', source
ORDER BY used_in_fit = '', source

-- name: heading
SELECT printf('%d runs; median |error| of those that no fit rests on: %.1f %%', (SELECT count(*) FROM v_validation WHERE error IS NOT NULL), 100 * error)
  AS setting
FROM (SELECT abs(error) AS error FROM v_validation WHERE error IS NOT NULL AND used_in_fit = '' ORDER BY abs(error))
LIMIT 1 OFFSET (SELECT count(*) / 2 FROM v_validation WHERE error IS NOT NULL AND used_in_fit = '')
