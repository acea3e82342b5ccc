-- Errors of published runs source by source, against the number of GPUs and against exposed communication and bubble: the newest `flopcast validate --db`.
-- Of more than 40 sources those with fewest runs share the last panels.

-- name: runs
WITH known AS (SELECT *, iif(source = '', model, source) AS name FROM v_validation WHERE error IS NOT NULL),
  sizes AS (SELECT name, row_number() OVER (ORDER BY count(*) DESC, name) AS rank FROM known GROUP BY name),
  places AS (SELECT name, dense_rank() OVER (ORDER BY iif(rank > 39 AND (SELECT count(*) FROM sizes) > 40, 1, 0), iif(rank > 39 AND (SELECT count(*) FROM sizes) > 40, '', name)) AS place FROM sizes)
SELECT
  place,
  coalesce(used_in_fit, '') <> '' AS fitted,
  gpus,
  100 * waiting_share AS waiting,
  max(-60, min(60, 100 * error)) AS error,
  abs(error) > 0.6 AS beyond
FROM known JOIN places USING (name)
ORDER BY place, fitted, gpus

-- name: sources
WITH known AS (SELECT *, iif(source = '', model, source) AS name, abs(error) AS e FROM v_validation WHERE error IS NOT NULL),
  sizes AS (SELECT name, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, name) AS rank FROM known GROUP BY name),
  named AS (SELECT known.*, iif(rank > 39 AND (SELECT count(*) FROM sizes) > 40, 'other sources', name) AS title, rank > 39 AND (SELECT count(*) FROM sizes) > 40 AS other FROM known JOIN sizes USING (name))
SELECT
  printf('%s', iif(length(title) > 62, substr(title, 1, 59) || '...', title)) AS label,
  printf('%d run%s, median |error| %s %%', count(*), iif(count(*) = 1, '', 's'), fixed(100 * quantile(e, 0.5), 1)) AS said
FROM named
GROUP BY title
ORDER BY max(other), title

-- name: heading
SELECT printf('%d runs of %d source%s', count(*), count(DISTINCT iif(source = '', model, source)), iif(count(DISTINCT iif(source = '', model, source)) = 1, '', 's'))
  || (SELECT CASE count(*) WHEN 0 THEN '' ELSE printf('; %d simulated out of memory, but ran', count(*)) END FROM v_validation WHERE status = 'oom' AND NOT measured_oom AND coalesce(measured_tokens_per_s_per_gpu, measured_tflops_per_gpu, measured_step_time_s) IS NOT NULL) AS setting
FROM v_validation
WHERE error IS NOT NULL
