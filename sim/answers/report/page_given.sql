-- What --set gave, a row a value, in the order of the points.
SELECT path, type, value, unit
FROM (
  SELECT replace(substr(tree.path, 3), '"', '') AS path, point.position,
    max(CASE tree.key WHEN 'value' THEN tree.type END) AS type, max(CASE tree.key WHEN 'value' THEN tree.atom END) AS value,
    max(CASE tree.key WHEN 'unit' THEN tree.atom END) AS unit, max(CASE tree.key WHEN 'origin' THEN tree.atom END) AS origin,
    min(tree.id) AS place
  FROM main.point JOIN json_tree(main.point.config) AS tree
  WHERE main.point.id IN (SELECT point_id FROM shown) AND tree.key IN ('value', 'unit', 'origin')
  GROUP BY point.id, tree.path
)
WHERE origin LIKE '--%' AND type IS NOT NULL
GROUP BY path, type, value, unit
ORDER BY min(place), min(position)
