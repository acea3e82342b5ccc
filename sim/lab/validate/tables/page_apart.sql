/* By reasons that the tables state: a value of the row was measured in the same job, say. */
DELETE FROM member;
INSERT INTO member
SELECT iif(apart = '', 0, min(i) OVER (PARTITION BY apart)), apart, '', i FROM run
WHERE NOT fitted AND EXISTS (SELECT 1 FROM run WHERE apart <> '');

--
-- ### Rows that are summed apart
--
-- Of rows that no fit rests on (column `apart` of the tables; slow reruns by the rule of sim/lab/validate/validate.h).
--
SELECT iif(part = '', 'all others', part) AS rows, speeds, 100 * bias AS "bias||+1", 100 * median AS "median||1", 100 * p90 AS "p90||1"
FROM summary ORDER BY place;
