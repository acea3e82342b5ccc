--
-- first: errors of predictions made before the measurements were known; today: of the same rows
SELECT part AS source, count(*) AS speeds,
  100 * quantile(first_sight_error, 0.5) AS "first: bias|%|1", 100 * quantile(abs(first_sight_error), 0.5) AS "median|%|1",
  100 * quantile(abs(first_sight_error), 0.9) AS "p90|%|1",
  100 * quantile(error, 0.5) AS "today: bias|%|1", 100 * quantile(abs(error), 0.5) AS "median|%|1", 100 * quantile(abs(error), 0.9) AS "p90|%|1"
FROM (SELECT i AS place, source AS part, * FROM run UNION ALL SELECT 'z', 'all', * FROM run)
WHERE first_sight_error IS NOT NULL GROUP BY typeof(place), part ORDER BY min(place);
