-- The run that is shown; which of its pictures have something to show.
SELECT
  run.id, run.scenario, run.description, run.file, run.version, run.created_utc, count(*), coalesce(run.points, count(*)),
  count(DISTINCT gpus), min(status = 'oom'), (SELECT count(*) FROM main.explanation WHERE explanation.scenario = run.scenario),
  max(simulated_id IS NOT NULL),
  (SELECT coalesce(json_extract(config, '$.assumptions.value'), '') FROM main.point AS first WHERE first.run_id = run.id ORDER BY position LIMIT 1)
FROM shown JOIN main.point AS point ON point.id = point_id JOIN main.run AS run ON run.id = point.run_id
GROUP BY run.id
ORDER BY run.id DESC
