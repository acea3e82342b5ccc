DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'waiting';

--
-- ### By exposed communication and bubble
--
-- Rows that no fit rests on. *runs*: rows of a source that are the same run count once, with the median of what was
-- measured.
--
SELECT 'exposed communication and bubble' AS "@", * FROM page_class;
