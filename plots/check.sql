-- A log of nccl-tests beside what is predicted for its cluster: the newest `flopcast calibrate check LOG --topology T --db`.

-- name: points
SELECT bytes, measured_busbw / 1e9 AS measured, predicted_busbw / 1e9 AS predicted, 100 * error AS error FROM v_nccl_check

-- name: choices
-- Where algorithm or protocol change; rows of labels keep neighbours apart.
SELECT bytes, predicted_busbw / 1e9 AS predicted, algorithm || ' ' || protocol AS choice, row_number() OVER (ORDER BY bytes) % 3 AS line
FROM (SELECT *, lag(algorithm || protocol) OVER (ORDER BY bytes) AS before FROM v_nccl_check)
WHERE before IS NULL OR before <> algorithm || protocol

-- name: heading
SELECT
  printf('%s, %d ranks on %d node%s of %s: %s beside %s', collective, ranks, nodes, CASE WHEN nodes > 1 THEN 's' ELSE '' END, gpu,
    replace(log, rtrim(log, replace(log, '/', '')), ''), replace(topology, rtrim(topology, replace(topology, '/', '')), '')) AS setting, -- names without folders
  printf('error, %%%s%s',
    CASE WHEN large_error IS NOT NULL THEN printf('; median from 1 MiB on %.1f', 100 * large_error) ELSE '' END,
    CASE WHEN small_error IS NOT NULL THEN printf('; below 64 KiB %.1f', 100 * small_error) ELSE '' END) AS errors
FROM v_nccl_check LIMIT 1
