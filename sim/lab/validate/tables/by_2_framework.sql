DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'framework' UNION ALL SELECT * FROM total;

--
-- by framework
SELECT 'framework' AS "@", * FROM by_class;
