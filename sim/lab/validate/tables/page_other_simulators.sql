/* A row a sample that all of these have; flopcast: each run once. */
CREATE TEMP TABLE IF NOT EXISTS blind AS
SELECT peers.rowid AS place, sample, tool, peers.id,
  abs(CAST(peers.step_time_s AS REAL) / (run.predicted_step_time_s * (1 + run.error)) - 1) AS peer, abs(1 / (1 + run.first_sight_error) - 1) AS own
FROM peers JOIN run ON run.i = (SELECT min(i) FROM run WHERE run.id = peers.id)
WHERE run.error IS NOT NULL AND run.first_sight_error IS NOT NULL AND peers.step_time_s IS NOT NULL;
CREATE TEMP VIEW IF NOT EXISTS of_tool AS
SELECT sample, tool, fixed(100 * quantile(peer, 0.5), 1) || ' / ' || fixed(100 * quantile(peer, 0.9), 1) AS errors FROM blind GROUP BY sample, tool HAVING count(*) > 1;

-- Other simulators on the same runs, which flopcast predicted blind: median and 90th percentile of errors in %.
--
SELECT sample AS runs, fixed(100 * quantile(own, 0.5), 1) || ' / ' || fixed(100 * quantile(own, 0.9), 1) AS ">flopcast",
  a.errors AS ">Calculon", b.errors AS ">llm-analysis", c.errors AS ">RAPID-LLM", d.errors AS ">SimuMax"
FROM (SELECT sample, min(place) AS place, own FROM blind GROUP BY sample, id)
  JOIN of_tool AS a USING (sample) JOIN of_tool AS b USING (sample) JOIN of_tool AS c USING (sample) JOIN of_tool AS d USING (sample)
WHERE a.tool = 'Calculon' AND b.tool = 'llm-analysis' AND c.tool = 'RAPID-LLM' AND d.tool = 'SimuMax'
GROUP BY sample ORDER BY min(place);
