--
-- speed on one GPU or one node, by stack profile (aim: 7 % in the median)
SELECT iif(framework = '', 'none', framework) AS stack, iif(framework = '', source, '') AS source, iif(fitted, 'yes', 'no') AS "in fit",
  count(*) AS rows, 100 * quantile(error, 0.5) AS "bias|%|1", 100 * quantile(abs(error), 0.5) AS "median|%|1", 100 * max(abs(error)) AS "most|%|1"
FROM run WHERE loaded AND error IS NOT NULL AND gpus <= node_gpus
GROUP BY 1, 2, fitted ORDER BY min(i);
