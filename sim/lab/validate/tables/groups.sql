DELETE FROM member;
INSERT INTO member
SELECT min(i) OVER (PARTITION BY source, gpu), source, gpu, i FROM run WHERE gpu <> ''
UNION ALL SELECT place, iif((SELECT max(fitted) FROM run), part, 'all'), 'all', i FROM total;

SELECT part AS source, within AS GPU, iif(fitted, 'yes', 'no') AS "in fit",
  n AS "rows|||2", speeds, 100 * bias AS "bias|%|1", 100 * median AS "median|%|1", 100 * p90 AS "p90|%|1", 100 * mean AS "mean|%|1|7",
  ratios AS "ratios|||4", 100 * ratio_mean AS "mean|points|1|5", 100 * ratio_most AS "most|points|1|6",
  peaks AS "peaks|||3", 100 * peak_median AS "median|%|1|3", false_fits + false_oom AS "OOM wrong|||1"
FROM summary ORDER BY place, fitted DESC;

--
-- speeds: |predicted / measured - 1|; ratios: speed over that of the curve's smallest cluster, percentage points;
-- peaks: of memory, allocated where that was measured, else reserved by PyTorch; OOM wrong: out of memory only here, or only there
