DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'framework';

--
-- ### By framework
--
-- Rows that no fit rests on. *runs*: rows of a source that are the same run count once, with the median of what was
-- measured.
--
SELECT 'framework' AS "@", * FROM page_class;
