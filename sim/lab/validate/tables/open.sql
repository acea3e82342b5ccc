SELECT count(*) || iif(count(*) = 1, ' run', ' runs')
  || ' whose prediction is off, and for which no number was changed. Deviations: predicted from measured.' AS ""
FROM run WHERE open;

SELECT iif(suspected_cause = '', 'No cause is suspected.', suspected_cause) AS "",
  id, model, gpu AS GPU, strategy, gpus AS GPUs, 100 * error AS "speed|%|+1", 100 * (predicted_ratio - measured_ratio) AS "ratio|points|+1",
  100 * peak_error AS "memory|%|+1",
  iif(oom = measured_oom, '', iif(oom, 'simulated out of memory', 'published out of memory')) AS "|"
FROM run WHERE open ORDER BY min(i) OVER (PARTITION BY suspected_cause), i;
