--
SELECT text AS "" FROM (
  SELECT 'Predicted: ' || group_concat(n || iif(n = 1, ' row', ' rows') || ' by ' || iif(instr(made_by, ' '),
    'build ' || replace(made_by, ' ', ' of commit '), 'a build that is not stated'), '; ') || '.' AS text
  FROM (SELECT made_by, count(*) AS n FROM run WHERE made_by IS NOT NULL GROUP BY made_by ORDER BY min(i)))
WHERE text IS NOT NULL;

SELECT 'Stale, because something else would go in today: ' || n || iif(n = 1, ' row', ' rows') || coalesce(': ' || names, '') || iif(n > 20, ', ...', '') || '.' AS ""
FROM (SELECT sum(stale) AS n, (SELECT group_concat(id, ', ') FROM (SELECT id FROM run WHERE stale ORDER BY i LIMIT 20)) AS names FROM run WHERE made_by IS NOT NULL)
WHERE n IS NOT NULL;
