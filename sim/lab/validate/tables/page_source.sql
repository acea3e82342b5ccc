DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'source' UNION ALL SELECT * FROM total;

-- ### By source
--
-- Errors of the speed of a GPU in percent: simulated / measured - 1. Rows that a fit rests on stand apart. *not run*: no
-- scenario, or not simulated, each with its reason. *first sight*: predictions that were committed before the
-- measurements, number and median; *missed* were predicted to run out of memory, or not at all. *ratios*: to the smallest cluster of the
-- same settings, mean error in points; *to a node*: those to one node, mean (median). Memory: peaks, number and median error. *90 %*: measurements in the 90 % intervals that runs of other makers give, in percent; then
-- the median width of these, in percent of the prediction. Out of memory: rows that fit and that do not, as published; false "fits"; false "out of memory".
--
SELECT iif(part = '', '(no source)', part) || iif(fitted AND typeof(place) <> 'text', ' (in fits)', '') AS source,
  n AS rows, not_simulated AS "not run",
  speeds, 100 * bias AS "bias||+1", 100 * median AS "median||1", 100 * p90 AS "p90||1",
  trim(iif(first_sights, first_sights || ': ' || fixed(100 * first_sight_median, 1), '') || iif(missed, ' (' || missed || ' missed)', '')) AS "first sight",
  iif(ratios, ratios || ': ' || fixed(100 * ratio_mean, 1), '') AS ratios,
  iif(node_ratios, node_ratios || ': ' || fixed(100 * node_ratio_mean, 1) || ' (' || fixed(100 * node_ratio_median, 1) || ')', '') AS "to a node",
  iif(allocated, allocated || ': ' || fixed(100 * allocated_median, 1), '') AS allocated,
  iif(reserved, reserved || ': ' || fixed(100 * reserved_median, 1), '') AS reserved,
  iif(intervals, fixed(100 * covered, 0) || '; ' || fixed(100 * width, 0), '') AS "90 %",
  fits_right || ', ' || oom_right AS "right: fit, OOM", false_fits AS "false fits", false_oom AS "false OOM"
FROM summary ORDER BY place, fitted DESC;
