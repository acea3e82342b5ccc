-- Bus bandwidth by size, measured by nccl-tests and predicted, one panel a table: the newest `flopcast calibrate fit nccl --db`.

-- name: points
-- As many tables as can be read beside each other.
SELECT
  panel, bytes, measured_busbw / 1e9 AS measured, predicted_busbw / 1e9 AS predicted
FROM v_nccl_point
JOIN (
  SELECT place, row_number() OVER (ORDER BY use = 'left_out', family, nodes, ranks, place) AS panel
  FROM v_nccl_point WHERE use <> 'bad' GROUP BY place HAVING count(*) >= 4
) USING (place)
WHERE panel <= 96
ORDER BY panel, bytes

-- name: panels
SELECT
  printf('%s, %d x %d', collective, nodes, ranks / nodes) AS what,
  printf('%s%s', topology, CASE WHEN use = 'fit' THEN ', fitted' ELSE '' END) AS machine,
  CASE WHEN large_error IS NOT NULL THEN printf('%.0f %%', 100 * large_error) ELSE '' END AS error
FROM v_nccl_table
WHERE use <> 'bad' AND place IN (SELECT place FROM v_nccl_point GROUP BY place HAVING count(*) >= 4)
ORDER BY use = 'left_out', family, nodes, ranks, place
LIMIT 96

-- name: heading
SELECT (SELECT iif(count(*) > 96, printf('96 of %d tables: ', count(*)), '') FROM v_nccl_table WHERE use <> 'bad') || printf('nodes x GPUs of a node, cluster, median error from 1 MiB on%s',
    CASE WHEN count(large_error) > 0
      THEN printf(': at most 10 %% for %d of %d left-out tables', sum(large_error <= 0.1), count(large_error))
      ELSE '' END) AS setting
FROM v_nccl_table WHERE use = 'left_out'
