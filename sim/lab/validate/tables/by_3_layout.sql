DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'layout' UNION ALL SELECT * FROM total;

--
-- by layout
SELECT 'layout' AS "@", * FROM by_class;
