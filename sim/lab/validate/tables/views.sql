/* Errors are fractions, ratio errors fractions of 1; NULL: not known. */
CREATE TABLE run AS
SELECT row.rowid AS i, row.*,
  row.used_in_fit <> '' AS fitted,
  row.status = 'oom' AS oom,
  row.status <> 'not_simulated' AND row.has_verdict AS judged,
  -- of the speed over that of the curve's smallest cluster, which does not count itself
  iif(row.measured_ratio = 1 AND row.predicted_ratio = 1, NULL, abs(row.predicted_ratio - row.measured_ratio)) AS ratio_error,
  smallest.node_gpus > 1 AND smallest.gpus = smallest.node_gpus AS to_node, -- that cluster is one whole node
  log2(1.0 * row.gpus / smallest.gpus) AS doublings,
  row.predicted_peak_bytes / row.measured_peak_bytes - 1 AS peak_error,
  row.predicted_peak_allocated_bytes / row.measured_peak_allocated_bytes - 1 AS allocated_error,
  row.predicted_peak_reserved_bytes / row.measured_peak_reserved_bytes - 1 AS reserved_error,
  (row.predicted_high - row.predicted_low) / row.predicted_tokens_per_s_per_gpu AS width
FROM row LEFT JOIN row AS smallest ON smallest.rowid = row.smallest AND row.measured_ratio IS NOT NULL;

CREATE UNIQUE INDEX run_i ON run (i);

/* Rows in the parts of a table, which fills it; `within`: another name of the part. Rows that a fit rests on stand apart in each. */
CREATE TABLE member (place, part, within, i);

CREATE VIEW summary AS
WITH
  rows AS (SELECT member.place, member.part, member.within, run.* FROM member JOIN run USING (i)),
  -- rows of one source that are the same run: the prediction is one, so measured / predicted has the median that the measurements have
  repeated AS (
    SELECT place, part, within, fitted, abs(1 / quantile(1 / (1 + error), 0.5) - 1) AS error
    FROM rows WHERE error IS NOT NULL GROUP BY place, part, within, fitted, same, source),
  runs AS (SELECT place, part, within, fitted, count(*) AS runs, quantile(error, 0.5) AS runs_median FROM repeated GROUP BY place, part, within, fitted),
  middle AS (SELECT place, part, within, fitted, quantile(error, 0.5) AS bias FROM rows GROUP BY place, part, within, fitted)
SELECT place, part, within, fitted,
  count(*) AS n, sum(status = 'not_simulated') AS not_simulated,
  count(error) AS speeds, bias, quantile(abs(error - bias), 0.5) AS mad,
  quantile(abs(error), 0.5) AS median, quantile(abs(error), 0.9) AS p90, avg(abs(error)) AS mean,
  coalesce(runs, 0) AS runs, runs_median,
  count(first_sight_error) AS first_sights, quantile(abs(first_sight_error), 0.5) AS first_sight_median, sum(first_sight_missed) AS missed,
  count(ratio_error) AS ratios, avg(ratio_error) AS ratio_mean, max(ratio_error) AS ratio_most,
  count(iif(to_node, ratio_error, NULL)) AS node_ratios,
  avg(iif(to_node, ratio_error, NULL)) AS node_ratio_mean, quantile(iif(to_node, ratio_error, NULL), 0.5) AS node_ratio_median,
  count(peak_error) AS peaks, quantile(abs(peak_error), 0.5) AS peak_median,
  count(allocated_error) AS allocated, quantile(abs(allocated_error), 0.5) AS allocated_median,
  count(reserved_error) AS reserved, quantile(abs(reserved_error), 0.5) AS reserved_median,
  sum(judged AND NOT oom AND NOT measured_oom) AS fits_right, sum(judged AND oom AND measured_oom) AS oom_right,
  sum(judged AND NOT oom AND measured_oom) AS false_fits, sum(judged AND oom AND NOT measured_oom) AS false_oom,
  count(covered) AS intervals, 1.0 * sum(covered) / count(covered) AS covered, quantile(width, 0.5) AS width
FROM rows JOIN middle USING (place, part, within, fitted) LEFT JOIN runs USING (place, part, within, fitted)
GROUP BY place, part, within, fitted;

/* The last lines of a table: texts come behind numbers. */
CREATE VIEW total AS
SELECT iif(fitted, 'y', 'z') AS place, iif(fitted, 'all that fits rest on', 'all others') AS part, '' AS within, i FROM run;

/* What rows are broken down by. waiting: of the predicted step, exposed communication and bubble. */
CREATE VIEW class AS
SELECT 'source' AS kind, min(i) OVER (PARTITION BY source) AS place, source AS part, i FROM run
UNION ALL SELECT 'framework', 0, iif(framework = '', 'no stack profile', framework), i FROM run
UNION ALL SELECT 'layout', 0, iif(layout = '', 'not simulated', layout), i FROM run
UNION ALL SELECT 'gpus', column1, column3, i FROM run JOIN (VALUES
  (0, 1, '1'), (2, 8, '2 to 8'), (9, 64, '9 to 64'), (65, 512, '65 to 512'), (513, 1e300, 'more than 512')) ON gpus BETWEEN column1 AND column2
UNION ALL SELECT 'waiting', column1, column3, i FROM run JOIN (VALUES
  (-1, 0, 'no step'), (0, 0.05, 'under 5 %'), (0.05, 0.15, '5 to 15 %'), (0.15, 0.3, '15 to 30 %'), (0.3, 0.5, '30 to 50 %'), (0.5, 1e300, '50 % and more'))
  ON coalesce(waiting_share, -1) >= column1 AND coalesce(waiting_share, -1) < column2;

CREATE VIEW by_class AS
SELECT iif(part = '', '(no source)', part) AS "@|", iif(fitted, 'yes', 'no') AS "in fit",
  n AS rows, not_simulated AS "not simulated",
  speeds, 100 * bias AS "bias|%|1", 100 * median AS "median|%|1", 100 * p90 AS "p90|%|1", 100 * mad AS "MAD|%|1",
  runs, 100 * runs_median AS "median|%|1",
  ratios, 100 * ratio_mean AS "mean|points|1",
  node_ratios AS "to a node", 100 * node_ratio_mean AS "mean|points|1", 100 * node_ratio_median AS "median|points|1",
  allocated, 100 * allocated_median AS "median|%|1", reserved, 100 * reserved_median AS "median|%|1",
  fits_right AS fits, oom_right AS OOM, false_fits AS "false fits", false_oom AS "false OOM",
  100 * covered AS "in 90 %|%|1", 100 * width AS "width|%|1"
FROM summary ORDER BY place, part, fitted DESC;

CREATE VIEW page_class AS
SELECT part AS "@|", n AS rows, not_simulated AS "not run",
  speeds, 100 * bias AS "bias||+1", 100 * median AS "median||1", 100 * p90 AS "p90||1", 100 * mad AS "MAD||1",
  runs, 100 * runs_median AS "median||1",
  iif(intervals, fixed(100 * covered, 0) || '; ' || fixed(100 * width, 0), '') AS "90 %",
  false_fits AS "false fits", false_oom AS "false OOM"
FROM summary WHERE NOT fitted ORDER BY place, part;
