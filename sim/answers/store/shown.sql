-- What a figure shows, as temporary tables on the connection: points, their settings, which of these differ. Reads shown_run.

-- A row for each setting of each point. value: number or text (of files the name alone), as --where and the x axis have it; text: as
-- labels have it; own: the scenario or --set gives it or leaves it at its default, not a stack's or cluster's file, whose name says it.
CREATE TEMP TABLE shown_setting (
  point_id INTEGER NOT NULL, path TEXT NOT NULL, place INTEGER NOT NULL, value, text TEXT NOT NULL, own INTEGER NOT NULL,
  PRIMARY KEY (point_id, path)
) WITHOUT ROWID;

-- Most sections of a configuration ("cluster", "train") are the same in many points: each that differs is taken apart once.
-- place: a section's in the configuration, then a setting's in its section, which has fewer than a million.
CREATE TEMP TABLE shown_section AS
  SELECT point.id AS point_id, section.key AS key, section.value AS section, section.id AS place
  FROM main.point JOIN json_each(main.point.config) AS section
  WHERE run_id IN (SELECT run_id FROM shown_run) AND section.type = 'object';

CREATE TEMP TABLE shown_apart AS
  SELECT section_id, path, place,
    CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN '-' ELSE coalesce(quantity_text(value, unit), CAST(value AS TEXT)) END AS text,
    value, coalesce(origin NOT LIKE '%.yaml', 1) AS own
  FROM (
    SELECT section_id, path, place, type, unit, origin,
      iif(value LIKE '%.yaml', replace(replace(value, rtrim(value, replace(value, '/', '')), ''), '.yaml', ''), value) AS value
    FROM (
      SELECT section_id, one.key || replace(substr(tree.path, 2), '"', '') AS path, 1000000 * first + min(tree.id) AS place,
        max(CASE tree.key WHEN 'value' THEN tree.type END) AS type, max(CASE tree.key WHEN 'value' THEN tree.atom END) AS value,
        max(CASE tree.key WHEN 'unit' THEN tree.atom END) AS unit, max(CASE tree.key WHEN 'origin' THEN tree.atom END) AS origin
      FROM (SELECT min(rowid) AS section_id, key, section, min(min(place)) OVER (PARTITION BY key) AS first FROM shown_section GROUP BY key, section) AS one
        JOIN json_tree(section) AS tree
      WHERE tree.key IN ('value', 'unit', 'origin')
      GROUP BY 1, 2
    )
  )
  WHERE type IS NOT NULL AND path NOT IN ('model', 'strategy', 'name', 'description', 'assumptions');
CREATE INDEX temp.shown_apart_by_section ON shown_apart(section_id);

INSERT INTO shown_setting
SELECT point_id, path, shown_apart.place, value, text, own
FROM (SELECT point_id, min(rowid) OVER (PARTITION BY key, section) AS section_id FROM shown_section) CROSS JOIN shown_apart USING (section_id)
ORDER BY 1, 2;
DROP TABLE shown_apart;
DROP TABLE shown_section;

-- What stands in columns: the model by its own name, the strategy with how it shards.
INSERT INTO shown_setting
SELECT id, 'model', -2, model, model, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT id, 'strategy', -1, strategy, strategy, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT point.id, 'scenario', -4, scenario, scenario, 1 FROM main.point JOIN main.run ON run.id = run_id WHERE run_id IN (SELECT run_id FROM shown_run)
UNION ALL
SELECT id, 'run', -3, run_id, run_id, 1 FROM main.point WHERE run_id IN (SELECT run_id FROM shown_run);
