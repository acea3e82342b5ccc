-- A traced point that is one of the shown ones, be it of another run (`flopcast run --trace --db`): which run, and the part of its step
-- that is drawn: about the first backward kernel, or of a pipeline from the beginning until each stage has had some three cells a stage.
WITH traced AS (
  SELECT point.id, run_id, step_time_s, printf('%s %s, batch %d, %d GPU%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's')) AS label,
    (SELECT max(micro_batch) + 1 FROM main.span WHERE point_id = point.id AND stream = 'compute') AS micro_batches,
    (SELECT count(DISTINCT program) FROM main.span WHERE point_id = point.id AND stream = 'compute') AS stages,
    (SELECT min(start_s) FROM main.span WHERE point_id = point.id) AS begins_s,
    (SELECT min(start_s) FROM main.span WHERE point_id = point.id AND phase = 'backward' AND stream = 'compute') AS backward_s
  FROM main.point AS point
  WHERE id IN (SELECT point_id FROM main.span)
    -- the same settings on the same hardware; a trace changes neither, but the number of ranks that are simulated one by one
    AND (curve, gpus, hardware_id, seed) IN (SELECT curve, gpus, hardware_id, seed FROM main.point WHERE id IN (SELECT point_id FROM shown))
  ORDER BY id DESC
  LIMIT 1
)
SELECT run_id, label, stages > 1,
  iif(stages > 1, begins_s, max(begins_s, coalesce(backward_s, step_time_s / 2) - 0.02 * step_time_s)),
  iif(stages > 1, begins_s + step_time_s * min(1, 3.0 * stages / (micro_batches + stages - 1)),
    max(begins_s, coalesce(backward_s, step_time_s / 2) - 0.02 * step_time_s) + 0.04 * step_time_s),
  step_time_s
FROM traced
