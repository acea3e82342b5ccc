DELETE FROM member;
INSERT INTO member SELECT place, part, '', i FROM class WHERE kind = 'gpus';

--
-- ### By GPUs
--
-- Rows that no fit rests on. *runs*: rows of a source that are the same run count once, with the median of what was
-- measured.
--
SELECT 'GPUs' AS "@", * FROM page_class;
