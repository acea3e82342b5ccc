DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'source' UNION ALL SELECT * FROM total;

--
-- by source
SELECT 'source' AS "@", * FROM by_class;
