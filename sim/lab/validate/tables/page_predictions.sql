/* Files of predictions, and which programs made them. */
--
SELECT text AS "" FROM (
  SELECT 'Predictions (`predictions/`), and the build that made them: ' || group_concat('`' || name || '` by ' || predicted_by, '; ') || '.' AS text
  FROM (SELECT replace(first_sight_file, rtrim(first_sight_file, replace(first_sight_file, '/', '')), '') AS name, predicted_by
    FROM run WHERE predicted_by <> '' GROUP BY first_sight_file, predicted_by ORDER BY min(i)))
WHERE text IS NOT NULL;
