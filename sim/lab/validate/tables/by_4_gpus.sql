DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'gpus' UNION ALL SELECT * FROM total;

--
-- by gpus
SELECT 'gpus' AS "@", * FROM by_class;
