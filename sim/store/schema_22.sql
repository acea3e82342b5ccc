-- Schema 22: exposed_comm_s is without the bubble: compute_s + exposed_comm_s + bubble_s + host_bound_s + other_idle_s = step_time_s
-- (sim/exec/exec.h). Of a job without stages bubble_s is NULL and counts as 0.

UPDATE point SET exposed_comm_s = max(0, exposed_comm_s - bubble_s) WHERE bubble_s IS NOT NULL;
UPDATE program SET exposed_comm_s = max(0, exposed_comm_s - bubble_s) WHERE bubble_s IS NOT NULL;
DELETE FROM sample; -- of outcomes, whose exposed_comm_s held the bubble
DELETE FROM outcome;
ALTER TABLE outcome ADD COLUMN bubble_s REAL NOT NULL DEFAULT 0;
ALTER TABLE validation_row RENAME COLUMN exposed_share TO waiting_share; -- exposed communication and bubble, of the predicted step

-- Where the time of a step goes: compute_alone_s + contention_s + exposed_comm_s + bubble_s + host_bound_s + other_idle_s = step_time_s.
DROP VIEW v_breakdown;
CREATE VIEW v_breakdown AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, strategy, precision, micro_batch, gpus, step_time_s,
    compute_s - contention_s AS compute_alone_s, contention_s, exposed_comm_s, coalesce(bubble_s, 0.0) AS bubble_s, host_bound_s,
    other_idle_s, comm_s, comm_latency_s, comm_wait_s
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  WHERE status = 'ok';
