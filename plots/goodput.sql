-- The share of the time that trains, over the number of GPUs, or over the checkpoint interval where several are given for one number of GPUs; of one curve also where the rest goes: the newest `flopcast goodput SCENARIO --db`.

-- name: points
WITH newest AS (SELECT * FROM goodput_point WHERE goodput_id = (SELECT max(id) FROM goodput) AND goodput IS NOT NULL),
axis AS (SELECT max(n) > 1 AS is_interval
  FROM (SELECT label, count(DISTINCT iif(searched, NULL, checkpoint_interval_s)) AS n FROM newest GROUP BY label, gpus))
SELECT * FROM (SELECT
  dense_rank() OVER (ORDER BY label, iif(coalesce(is_interval, 0), gpus, 0)) AS curve,
  iif(coalesce(is_interval, 0), checkpoint_interval_s / 60, gpus) AS x,
  100 * goodput AS goodput,
  100 * goodput_p05 AS low,
  100 * goodput_p95 AS high,
  100 * checkpoint_share AS checkpoint,
  100 * lost_work_share AS lost_work,
  100 * detection_share AS detection,
  100 * waiting_share AS waiting,
  100 * restart_share AS restart,
  100 * shrunk_share AS shrunk,
  100 * coalesce(slowed_share, 0) AS slowed
FROM newest, axis)
WHERE curve <= 12
ORDER BY curve, x

-- name: curves
WITH newest AS (SELECT * FROM goodput_point WHERE goodput_id = (SELECT max(id) FROM goodput) AND goodput IS NOT NULL),
axis AS (SELECT max(n) > 1 AS is_interval
  FROM (SELECT label, count(DISTINCT iif(searched, NULL, checkpoint_interval_s)) AS n FROM newest GROUP BY label, gpus))
SELECT label || iif(coalesce(is_interval, 0), printf(', %d GPUs', gpus), '') AS name
FROM newest, axis
GROUP BY label, iif(coalesce(is_interval, 0), gpus, 0)
ORDER BY label, iif(coalesce(is_interval, 0), gpus, 0)
LIMIT 12

-- name: heading
WITH newest AS (SELECT * FROM goodput_point WHERE goodput_id = (SELECT max(id) FROM goodput) AND goodput IS NOT NULL),
axis AS (SELECT max(n) > 1 AS is_interval, iif(max(n) > 1, count(*), count(DISTINCT label)) AS curves
  FROM (SELECT label, count(DISTINCT iif(searched, NULL, checkpoint_interval_s)) AS n FROM newest GROUP BY label, gpus))
SELECT
  scenario || ': ' || printf('%g days, %d histories', (SELECT max(days) FROM newest), histories) AS setting,
  iif(coalesce(is_interval, 0), 'minutes between checkpoints', 'GPUs') AS axis,
  iif(coalesce(is_interval, 0), 'checkpoint interval', 'number of GPUs') AS over,
  'Bands: 5 to 95 % of the histories.'
    || iif((SELECT min(searched) FROM newest), ' Each point has the checkpoint interval that was found best for it.', '')
    || iif(curves > 12, printf(' %d more curves are not drawn.', curves - 12), '') AS note
FROM goodput, axis
WHERE id = (SELECT max(id) FROM goodput)
