-- kind: 1 the command line, 2 a file, 3 the default. A setting that is swept has its values in the order of the points.
WITH setting AS (
  SELECT tree.path AS json_path, replace(substr(tree.path, 3), '"', '') AS path, min(tree.id) AS place, point.position,
    max(CASE tree.key WHEN 'value' THEN tree.type END) AS type, max(CASE tree.key WHEN 'value' THEN tree.atom END) AS value,
    max(CASE tree.key WHEN 'unit' THEN tree.atom END) AS unit, max(CASE tree.key WHEN 'origin' THEN tree.atom END) AS origin
  FROM main.point JOIN json_tree(main.point.config) AS tree
  WHERE main.point.id IN (SELECT point_id FROM shown) AND tree.key IN ('value', 'unit', 'origin')
  GROUP BY point.id, tree.path
), text AS (
  SELECT path, min(place) AS place, min(position) AS first, type, origin,
    CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN '-' ELSE coalesce(quantity_text(value, unit), CAST(value AS TEXT)) END AS text
  FROM setting
  WHERE type IS NOT NULL AND path NOT IN ('name', 'description', 'assumptions')
  GROUP BY path, text, origin
  ORDER BY first
)
SELECT
  CASE WHEN origin LIKE '--%' THEN 1 WHEN origin = 'default' THEN 3 ELSE 2 END AS kind,
  path AS "setting", group_concat(DISTINCT text) AS "value",
  min(origin) || iif(count(DISTINCT origin) > 1, printf(' and %d more places', count(DISTINCT origin) - 1), '') AS "origin"
FROM text
GROUP BY path, kind
ORDER BY kind, min(place)
