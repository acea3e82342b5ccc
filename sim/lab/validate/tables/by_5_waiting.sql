DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'waiting' UNION ALL SELECT * FROM total;

--
-- by waiting
SELECT 'waiting' AS "@", * FROM by_class;
