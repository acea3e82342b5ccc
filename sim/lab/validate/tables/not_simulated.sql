--
-- not simulated:
SELECT '  ' || reason || ': ' || group_concat(id, ' ') AS "" FROM run WHERE status = 'not_simulated' GROUP BY reason ORDER BY min(i);
