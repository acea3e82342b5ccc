SELECT
  key AS parameter, family,
  -- four digits, and the unit that the files use most: microseconds, GB/s
  printf('%.4g', value * scale) AS ">value", printf('%.4g', std_error * scale) AS ">+-",
  CASE unit WHEN 's' THEN 'us' WHEN 'B/s' THEN 'GB/s' ELSE unit END AS unit,
  100 * std_error / value AS "%||1", sizes, places AS "rests on tables"
FROM (SELECT *, CASE unit WHEN 's' THEN 1e6 WHEN 'B/s' THEN 1e-9 ELSE 1 END AS scale FROM v_nccl_parameter);

--
SELECT
  place AS ">table", printf('%s, %d x %d', collective, nodes, ranks / nodes) AS what, topology,
  coalesce(fixed(100 * large_error, 1), '') AS ">>= 1 MiB %", coalesce(fixed(100 * small_error, 1), '') AS ">< 64 KiB %", source
FROM v_nccl_table WHERE use = 'fit' ORDER BY place;
