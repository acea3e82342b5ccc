-- Schema 16: jobs with a pipeline: its bubble, and the cells of its schedule.

ALTER TABLE point ADD COLUMN bubble_s REAL;     -- part of exposed_comm_s: stages waited for one another. NULL: there is one stage, or simulated before schema 16
ALTER TABLE point ADD COLUMN stage_wait_s REAL; -- part of comm_wait_s: for ranks of other stages
ALTER TABLE program ADD COLUMN bubble_s REAL;
ALTER TABLE program ADD COLUMN stage_wait_s REAL;

-- What a kernel or message of a schedule's cell is for; NULL: of no cell (host, optimizer), or stored before schema 16.
ALTER TABLE span ADD COLUMN program INTEGER;     -- that the rank runs: its stage; NULL: there is one
ALTER TABLE span ADD COLUMN micro_batch INTEGER; -- from 0
ALTER TABLE span ADD COLUMN chunk INTEGER;       -- of the model, of an interleaved schedule; from 0
ALTER TABLE span ADD COLUMN pass TEXT CHECK (pass IN ('forward', 'backward', 'backward_input', 'backward_weight'));

-- As in schema 13, and the cells.
DROP VIEW v_timeline;
CREATE VIEW v_timeline AS
  SELECT
    point_id, 1 AS place, rank, CASE stream WHEN 'host' THEN 0 WHEN 'compute' THEN 1 WHEN 'comm' THEN 2 ELSE 3 END AS stream_place, stream,
    iif(point_id IN (SELECT point_id FROM trace_check_step), 'simulated ', 'rank ' || rank || ' ') || stream AS label,
    phase, name, is_collective, host, start_s, moving_s, end_s, program, micro_batch, chunk, pass
  FROM span
  UNION ALL
  SELECT
    point_id, 0, coalesce(rank, 0), stream, CAST(stream AS TEXT), 'measured stream ' || stream,
    phase, iif(class = 'collective', coalesce(collective, class), class), class = 'collective', NULL, start_s, start_s, end_s, NULL, NULL, NULL, NULL
  FROM trace_check_span JOIN trace_check_step AS step USING (fit_id)
  WHERE fit_id = (SELECT max(fit_id) FROM trace_check_step WHERE point_id = step.point_id);

-- What `plot timeline` draws of a pipeline: the compute stream of a rank of each stage, cell by cell, where a trace has several stages.
-- What is of no cell is a box as long as nothing is waited for. number: NULL: of no cell.
CREATE VIEW v_cell AS
  SELECT
    point_id, rank, program AS stage, coalesce(pass, phase) AS pass, micro_batch + 1 AS number, chunk, min(start_s) AS start_s,
    max(end_s) AS end_s, sum(end_s - start_s) AS busy_s
  FROM (
    SELECT *, iif(pass IS NULL, sum(start_s > before_s + 1e-5) OVER (PARTITION BY point_id, rank ORDER BY start_s), 0) AS part
    FROM (
      SELECT *, lag(end_s, 1, -1) OVER (PARTITION BY point_id, rank ORDER BY start_s) AS before_s
      FROM span
      WHERE stream = 'compute' AND point_id IN (SELECT point_id FROM span GROUP BY point_id HAVING count(DISTINCT program) > 1)
    )
  )
  GROUP BY point_id, rank, program, coalesce(pass, phase), micro_batch, chunk, part;
