-- After --where has taken points out of shown_setting, and shown_asked has the path of the x axis: curves, panels and their names.

CREATE TEMP TABLE shown_point (point_id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, place INTEGER NOT NULL);
INSERT INTO shown_point
SELECT id, run_id, row_number() OVER (ORDER BY shown_run.place, position)
FROM main.point JOIN shown_run USING (run_id)
WHERE id IN (SELECT point_id FROM shown_setting);

CREATE TEMP TABLE shown_vary (path TEXT PRIMARY KEY, place INTEGER NOT NULL, n INTEGER NOT NULL);
INSERT INTO shown_vary
SELECT path, min(place), count(DISTINCT text) FROM shown_setting GROUP BY path HAVING min(text) <> max(text) AND path NOT LIKE 'published.%';

-- Settings that names have beside model, strategy, micro-batch and GPUs, as v_varied has them: what differs between points that are alike
-- in these; sequence length, number format and cluster also where they differ at all.
CREATE TEMP TABLE shown_named (path TEXT PRIMARY KEY);
INSERT INTO shown_named
WITH alike AS (
  SELECT shown_point.point_id, dense_rank() OVER (ORDER BY shown_point.run_id, model, strategy, micro_batch, gpus) AS alike, shown_point.run_id
  FROM shown_point JOIN main.point ON point.id = point_id
), setting AS (
  SELECT * FROM shown_setting JOIN alike USING (point_id)
  WHERE own AND path IN (SELECT path FROM shown_vary)
    AND path NOT IN ('scenario', 'run', 'model', 'strategy', 'fsdp.sharding_strategy', 'deepspeed.zero_optimization.stage', 'train.micro_batch', 'cluster.gpus')
)
SELECT path FROM setting GROUP BY alike, path HAVING min(text) <> max(text)
UNION
SELECT path FROM setting WHERE path IN ('train.seq_len', 'train.precision', 'cluster.topology') GROUP BY run_id, path HAVING min(text) <> max(text)
UNION
SELECT 'scenario' FROM shown_vary WHERE path = 'scenario'
UNION -- runs of one scenario
SELECT 'run' FROM shown_setting WHERE path = 'scenario' AND (SELECT count(DISTINCT text) FROM shown_setting WHERE path = 'run')
  > (SELECT count(DISTINCT text) FROM shown_setting WHERE path = 'scenario');
