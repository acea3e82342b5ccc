-- Predicted against measured speed of training runs, and the error against the number of GPUs: the newest `flopcast validate --db`.

-- More than 12 sources have no room in a legend: then rows that a fit rests on, and others. `plot validation_sources` has a panel a source.
-- name: runs
WITH amount AS (SELECT count(*) > 12 AS many FROM (SELECT DISTINCT used_in_fit = '', source FROM v_validation WHERE error IS NOT NULL))
SELECT
  dense_rank() OVER (ORDER BY used_in_fit = '', iif(many, '', iif(source = '', model, source))) AS place,
  gpus,
  measured_tokens_per_s_per_gpu AS measured,
  predicted_tokens_per_s_per_gpu AS predicted,
  100 * error AS error,
  predicted_low AS low,
  predicted_high AS high,
  100 * (predicted_low / measured_tokens_per_s_per_gpu - 1) AS error_low,
  100 * (predicted_high / measured_tokens_per_s_per_gpu - 1) AS error_high
FROM v_validation, amount
WHERE error IS NOT NULL
ORDER BY place, gpus

-- name: sources
WITH amount AS (SELECT count(*) > 12 AS many FROM (SELECT DISTINCT used_in_fit = '', source FROM v_validation WHERE error IS NOT NULL))
SELECT
  iif(many, printf('%s (%d)', iif(used_in_fit = '', 'no fit rests on them', 'a fit rests on them'), count(*)), printf('%s%s (%d)', iif(length(name) > 60, substr(name, 1, 57) || '...', name), CASE WHEN used_in_fit = '' THEN '' ELSE ', in fit' END, count(*))) AS label,
  used_in_fit = '' AS unseen,
  many
FROM (SELECT *, iif(source = '', model, source) AS name FROM v_validation) -- a table of one's own need not say where it is from
  , amount
WHERE error IS NOT NULL
GROUP BY used_in_fit = '', iif(many, '', name)
ORDER BY used_in_fit = '', name

-- name: heading
WITH unseen AS (SELECT * FROM v_validation WHERE error IS NOT NULL AND used_in_fit = '')
SELECT (SELECT printf('%d run%s', count(*), iif(count(*) = 1, '', 's')) FROM v_validation WHERE error IS NOT NULL)
  || coalesce((SELECT '; median |error| of those that no fit rests on: ' || fixed(100 * quantile(abs(error), 0.5), 1) || ' %' FROM unseen), '')
  || (SELECT CASE count(predicted_low) WHEN 0 THEN '' ELSE printf('; their 90 %% intervals%s cover %.0f %%',
    iif((SELECT count(*) > 12 FROM (SELECT DISTINCT used_in_fit = '', source FROM v_validation WHERE error IS NOT NULL)), '', ' (bars)'),
    100.0 * sum(measured_tokens_per_s_per_gpu BETWEEN predicted_low AND predicted_high) / count(predicted_low)) END FROM unseen) AS setting
