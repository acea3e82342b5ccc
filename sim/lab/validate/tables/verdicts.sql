--
-- simulated out of memory, but ran:
SELECT '  ' || iif(source = '', '(no source)', source) || ': ' || group_concat(id, ' ') AS ""
FROM run WHERE judged AND oom AND NOT measured_oom GROUP BY source ORDER BY min(i);

--
-- simulated to fit, but ran out of memory:
SELECT '  ' || iif(source = '', '(no source)', source) || ': ' || group_concat(id, ' ') AS ""
FROM run WHERE judged AND NOT oom AND measured_oom GROUP BY source ORDER BY min(i);
