-- First where kernels have the smallest share, as in the heading of the figure breakdown.
SELECT printf('%s %s, batch %d, %d GPU%s%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, '')) AS label, sentence
FROM shown JOIN v_step USING (point_id)
ORDER BY part_1_s / step_time_s, place
