-- What a figure shows, as temporary tables on the connection: points, their settings, which of these differ. Reads shown_run.

-- A row for each setting of each point. value: number or text (of files the name alone), as --where and the x axis have it; text: as
-- labels have it; own: the scenario or --set gives it or leaves it at its default, not a stack's or cluster's file, whose name says it.
CREATE TEMP TABLE shown_setting (
  point_id INTEGER NOT NULL, path TEXT NOT NULL, place INTEGER NOT NULL, value, text TEXT NOT NULL, own INTEGER NOT NULL,
  PRIMARY KEY (point_id, path)
) WITHOUT ROWID;

INSERT INTO shown_setting
SELECT point_id, path, place, value,
  CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN '-' ELSE coalesce(quantity_text(value, unit), CAST(value AS TEXT)) END,
  coalesce(origin NOT LIKE '%.yaml', 1)
FROM (
  SELECT point_id, path, place, type, unit, origin,
    iif(value LIKE '%.yaml', replace(replace(value, rtrim(value, replace(value, '/', '')), ''), '.yaml', ''), value) AS value
  FROM (
    SELECT main.point.id AS point_id, replace(substr(tree.path, 3), '"', '') AS path, min(tree.id) AS place,
      max(CASE tree.key WHEN 'value' THEN tree.type END) AS type, max(CASE tree.key WHEN 'value' THEN tree.atom END) AS value,
      max(CASE tree.key WHEN 'unit' THEN tree.atom END) AS unit, max(CASE tree.key WHEN 'origin' THEN tree.atom END) AS origin
    FROM main.point JOIN json_tree(main.point.config) AS tree
    WHERE run_id IN (SELECT run_id FROM shown_run) AND tree.key IN ('value', 'unit', 'origin')
    GROUP BY 1, 2
  )
)
WHERE type IS NOT NULL AND path NOT IN ('model', 'strategy', 'name', 'description', 'assumptions');

-- What stands in columns: the model by its own name, the strategy with how it shards.
INSERT INTO shown_setting
SELECT id, 'model', -2, model, model, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT id, 'strategy', -1, strategy, strategy, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT point.id, 'scenario', -4, scenario, scenario, 1 FROM main.point JOIN main.run ON run.id = run_id WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT id, 'run', -3, run_id, run_id, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run);
