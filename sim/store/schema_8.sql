-- Schema 8 adds what cudaMalloc costs the host (sim/exec/exec.h).

ALTER TABLE point ADD COLUMN alloc_retries_a_step REAL; -- of measured steps: cudaMalloc failed and was tried again
ALTER TABLE point ADD COLUMN alloc_stall_s REAL;        -- seconds a step that the host stood for it; idle time that it causes is in host_bound_s
