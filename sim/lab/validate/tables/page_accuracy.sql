/* By the groups of results/groups.csv: patterns apart by ';', nothing: all. */
WITH
  source_of AS (SELECT groups.rowid AS g, value AS pattern FROM groups, json_each('["' || replace(coalesce(sources, '*'), ';', '","') || '"]')),
  gpu_of AS (SELECT groups.rowid AS g, value AS pattern FROM groups, json_each('["' || replace(coalesce(gpus, '*'), ';', '","') || '"]')),
  of_source AS (SELECT DISTINCT g, source FROM source_of JOIN (SELECT DISTINCT source FROM run) ON source GLOB pattern),
  of_gpu AS (SELECT DISTINCT g, gpu FROM gpu_of JOIN (SELECT DISTINCT gpu FROM run) ON gpu GLOB pattern),
  rows AS (SELECT groups.rowid AS g, run.* FROM groups JOIN of_source ON of_source.g = groups.rowid JOIN of_gpu ON of_gpu.g = groups.rowid
    JOIN run ON run.source = of_source.source AND run.gpu = of_gpu.gpu AND fitted = (in_fits = 'yes'))
SELECT "group" || iif(in_fits = 'yes', ': fitted', ': left out') AS "published runs",
  iif(count(first_sight_error), printf('%,d', count(first_sight_error)), '-') AS ">blind",
  coalesce(fixed(100 * quantile(abs(first_sight_error), 0.5), 1) || ' %', '-') AS ">median",
  coalesce(fixed(100 * quantile(abs(first_sight_error), 0.9), 1) || ' %', '-') AS ">p90",
  iif(count(error), printf('%,d', count(error)), '-') AS ">today",
  coalesce(fixed(100 * quantile(abs(error), 0.5), 1) || ' %', '-') AS ">median",
  coalesce(fixed(100 * quantile(abs(error), 0.9), 1) || ' %', '-') AS ">p90"
FROM groups LEFT JOIN rows ON g = groups.rowid GROUP BY groups.rowid;

/* Verdicts. */
--
SELECT * FROM (
  SELECT 'Verdicts fits / out of memory are right for ' || fixed(100.0 * good / n, 0)
    || printf(' %% of %,d runs, %,d of %,d that ran out of memory among them.', n, oom_right, measured) AS ""
  FROM (SELECT count(*) AS n, sum(oom = measured_oom) AS good, sum(oom AND measured_oom) AS oom_right, sum(measured_oom) AS measured FROM run WHERE judged)
  WHERE n > 0);
