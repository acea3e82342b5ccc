/* How many runs are predicted how well, in two lines; the newest: of the latest dates that have 100 runs and more together, by which files of
   predictions begin. */
SELECT iif(n, printf('**Why believe it?** %,d published runs were predicted blind: median error ', n) || fixed(100 * median, 1)
  || printf(' %%, of the newest %,d ', newest) || fixed(100 * newest_median, 1) || ' %.',
  '**Why believe it?** No published run was predicted blind.') AS ""
FROM (SELECT count(*) AS n, quantile(abs(first_sight_error), 0.5) AS median FROM run WHERE NOT fitted AND first_sight_error IS NOT NULL),
  (SELECT count(*) AS newest, quantile(abs(first_sight_error), 0.5) AS newest_median
  FROM (SELECT *, count(*) OVER (ORDER BY day DESC) - count(*) OVER (PARTITION BY day) AS newer
    FROM (SELECT first_sight_error, substr(replace(first_sight_file, rtrim(first_sight_file, replace(first_sight_file, '/', '')), ''), 1, 10) AS day
      FROM run WHERE NOT fitted AND first_sight_error IS NOT NULL))
  WHERE newer < 100);

SELECT printf('Today %,d that no fit rests on are at ', speeds) || coalesce(fixed(100 * median, 1), '0.0') || ' %, after changes that were made with errors in view'
  || iif(stale, printf('; %,d rows are stale', stale), '') || '.' AS ""
FROM (SELECT count(error) AS speeds, quantile(abs(error), 0.5) AS median FROM run WHERE NOT fitted), (SELECT sum(stale) AS stale FROM run);
