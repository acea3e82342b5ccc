-- The x axis: a number, or the place of a text among the others.
CREATE TEMP TABLE shown_x (point_id INTEGER PRIMARY KEY, x REAL NOT NULL, text TEXT NOT NULL);
INSERT INTO shown_x
SELECT point_id,
  iif(min(typeof(value) IN ('integer', 'real') AND text NOT IN ('true', 'false')) OVER (), value, dense_rank() OVER (ORDER BY first)), text
FROM (
  SELECT point_id, value, text, min(shown_point.place) OVER (PARTITION BY text) AS first
  FROM shown_setting JOIN shown_point USING (point_id)
  WHERE path = (SELECT path FROM shown_asked)
);

-- What names are made of. A setting that goes along with the x axis, one value for each value of the axis, does not distinguish curves.
CREATE TEMP TABLE shown_part (
  point_id INTEGER NOT NULL, path TEXT NOT NULL, place INTEGER NOT NULL, text TEXT NOT NULL,
  role TEXT NOT NULL, -- of the name of its curve, of its panel, or of neither
  PRIMARY KEY (point_id, path)
) WITHOUT ROWID;
INSERT INTO shown_part
WITH along AS (
  SELECT path FROM shown_setting JOIN shown_point USING (point_id)
  WHERE path NOT IN ('model', 'strategy', 'scenario', 'run') AND path IN (SELECT path FROM shown_vary) AND (SELECT min(x) < max(x) FROM shown_x)
  GROUP BY run_id, path HAVING min(text) <> max(text)
  EXCEPT
  SELECT path FROM shown_setting AS s JOIN shown_point USING (point_id) JOIN shown_x USING (point_id)
  GROUP BY shown_point.run_id, x, path HAVING min(s.text) <> max(s.text)
)
SELECT point_id, path,
  CASE path WHEN 'train.micro_batch' THEN 0 WHEN 'cluster.gpus' THEN 1 ELSE place + 10 * (place > 0) END,
  CASE path
    WHEN 'scenario' THEN ', ' || text
    WHEN 'run' THEN ', run ' || text
    WHEN 'model' THEN ', ' || text
    WHEN 'strategy' THEN ' ' || text
    WHEN 'train.micro_batch' THEN ', batch ' || text
    WHEN 'cluster.gpus' THEN printf(', %s GPU%s', text, iif(text = '1', '', 's'))
    WHEN 'train.seq_len' THEN printf(', %s tokens', text)
    WHEN 'train.precision' THEN ', ' || text
    ELSE ', ' || replace(path, rtrim(path, replace(path, '.', '')), '') || ' ' || text -- the last name of a dotted path
  END,
  CASE WHEN path = (SELECT path FROM shown_asked) OR path IN along
      OR (path = 'strategy' AND (SELECT path FROM shown_asked) IN ('fsdp.sharding_strategy', 'deepspeed.zero_optimization.stage')) THEN 'neither'
    WHEN path = 'cluster.gpus' AND path NOT IN (SELECT path FROM shown_vary) THEN 'neither'
    ELSE 'curve' END
FROM shown_setting
WHERE path IN ('model', 'strategy', 'train.micro_batch', 'cluster.gpus') OR (own AND path IN shown_named);

CREATE TEMP VIEW shown_label AS
  SELECT point_id,
    ltrim(group_concat(iif(role = 'curve', text, ''), ''), ', ') AS curve,
    ltrim(group_concat(iif(role = 'panel', text, ''), ''), ', ') AS panel,
    ltrim(group_concat(iif(path IN shown_named, text, ''), ''), ', ') AS varied
  FROM (SELECT * FROM shown_part ORDER BY point_id, place)
  GROUP BY point_id;
