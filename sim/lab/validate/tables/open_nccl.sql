--
-- Tables of collectives; `flopcast calibrate fit nccl` prints the error of each:
SELECT '  ' || status || ': ' || collective || ', ' || nodes || ' nodes, ' || gpu || ' (' || source || ')' || coalesce('. ' || suspected_cause, '') AS ""
FROM nccl_tables WHERE status IS NOT NULL;
