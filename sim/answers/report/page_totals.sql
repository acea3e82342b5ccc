-- What the tokens of the newest months of training of the scenario take, where they were given; three digits, as intervals are wide.
-- Columns without a value are left out by html_table().
SELECT
  printf('What %.4g billion tokens (images, samples) take; 90 %%: by failures and by how sure the step is', tokens / 1e9) AS caption,
  label AS "job", gpus AS "GPUs", printf('%d', spare_gpus) AS "spare GPUs", printf('%.3g', training_days) AS "days",
  CASE WHEN training_days_p95 IS NOT NULL THEN printf('%.3g to %.3g', training_days_p05, training_days_p95) END AS "90 % of days",
  CASE WHEN cost_usd IS NOT NULL THEN printf('%.4g', price_usd_per_gpu_hour) END AS "price, $ a GPU and hour",
  CASE WHEN cost_usd IS NOT NULL THEN printf('%,d', CAST(CAST(printf('%.3g', cost_usd) AS REAL) AS INTEGER)) END AS "cost, $",
  CASE WHEN cost_usd_p95 IS NOT NULL THEN printf('%,d to %,d', CAST(CAST(printf('%.3g', cost_usd_p05) AS REAL) AS INTEGER),
    CAST(CAST(printf('%.3g', cost_usd_p95) AS REAL) AS INTEGER)) END AS "90 % of cost",
  printf('%.3g', energy_kwh / 1000) AS "energy, MWh",
  CASE WHEN energy_kwh_p95 IS NOT NULL THEN printf('%.3g to %.3g', energy_kwh_p05 / 1000, energy_kwh_p95 / 1000) END AS "90 % of energy"
FROM main.goodput_point JOIN main.goodput ON goodput.id = goodput_id
WHERE training_days IS NOT NULL
  AND goodput_id = (SELECT max(id) FROM main.goodput WHERE scenario = (SELECT scenario FROM main.run WHERE id = (SELECT max(run_id) FROM shown)))
ORDER BY position
