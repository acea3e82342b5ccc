/* Other simulators on the same rows (results/peers.csv): errors of step times of them and of flopcast, those that were predicted first apart. */
WITH
  both AS (
    SELECT peers.rowid AS place, sample, tool, first_value(version) OVER (PARTITION BY sample, tool ORDER BY peers.rowid) AS version,
      CAST(peers.step_time_s AS REAL) / (run.predicted_step_time_s * (1 + run.error)) - 1 AS peer,
      1 / (1 + run.error) - 1 AS today, 1 / (1 + run.first_sight_error) - 1 AS blind
    FROM peers LEFT JOIN run ON run.i = (SELECT min(i) FROM run WHERE run.id = peers.id) AND run.error IS NOT NULL AND peers.step_time_s IS NOT NULL)
SELECT sample AS runs, tool || ' ' || version AS simulator,
  iif(count(blind), fixed(100 * quantile(iif(blind IS NULL, NULL, abs(peer)), 0.5), 1) || ' / ' || fixed(100 * quantile(iif(blind IS NULL, NULL, abs(peer)), 0.9), 1), '-') AS ">on blind runs",
  iif(count(blind), fixed(100 * quantile(abs(blind), 0.5), 1) || ' / ' || fixed(100 * quantile(abs(blind), 0.9), 1), '') AS ">flopcast blind",
  iif(count(blind), sum(abs(blind) < abs(peer)) || ' of ' || count(blind), '') AS ">nearer",
  iif(count(today), fixed(100 * quantile(abs(peer), 0.5), 1) || ' / ' || fixed(100 * quantile(abs(peer), 0.9), 1), '-') AS ">on all",
  iif(count(today), fixed(100 * quantile(abs(today), 0.5), 1) || ' / ' || fixed(100 * quantile(abs(today), 0.9), 1), '') AS ">flopcast today",
  iif(count(today), sum(abs(today) < abs(peer)) || ' of ' || count(today), '') AS ">nearer"
FROM both GROUP BY sample, tool, version ORDER BY min(place);
