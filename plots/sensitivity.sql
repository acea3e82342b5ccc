-- What a prediction depends on, the 15 numbers with the largest effect: the newest `flopcast sensitivity SCENARIO --db`.

-- name: parts
SELECT
  position + 1 AS place,
  parameter || ' (' || kind || printf(', %.3g %%)', 100 * spread) AS label,
  low_tflops_per_gpu AS low,
  high_tflops_per_gpu AS high,
  parameter || ' (' || kind || printf(', %.3g %%%%)', 100 * spread) AS tick -- gnuplot reads labels of an axis as formats
FROM sensitivity_part
WHERE sensitivity_id = (SELECT max(id) FROM sensitivity) AND position < 15
ORDER BY position

-- name: heading
SELECT
  scenario || ': ' || label AS setting,
  tflops_per_gpu AS tflops,
  printf('All together one standard deviation is %.2f %% (%.2f %% if they were independent), without what the model leaves out. ', 100 * correlated,
    100 * independent)
    || printf('Of the other numbers %d change it less, %d not at all.',
      max(0, (SELECT count(*) - 15 FROM sensitivity_part WHERE sensitivity_id = sensitivity.id)), idle) AS note
FROM sensitivity
WHERE id = (SELECT max(id) FROM sensitivity)
