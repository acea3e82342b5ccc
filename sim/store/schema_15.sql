-- Schema 15: jobs whose ranks run several programs (pipeline stages): time and memory of each of them. A job of one
-- program has no row here: its numbers are the point's.

CREATE TABLE program (
  point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
  program INTEGER NOT NULL,
  fullest INTEGER NOT NULL CHECK (fullest IN (0, 1)), -- 1: its memory is the point's
  compute_s REAL NOT NULL,                            -- means over its ranks and measured steps
  contention_s REAL NOT NULL,
  exposed_comm_s REAL NOT NULL,
  host_bound_s REAL NOT NULL,
  other_idle_s REAL NOT NULL,
  comm_s REAL NOT NULL,
  comm_latency_s REAL NOT NULL,
  comm_wait_s REAL NOT NULL,
  peak_allocated_bytes REAL NOT NULL,
  peak_reserved_bytes REAL NOT NULL,
  PRIMARY KEY (point_id, program)
) STRICT, WITHOUT ROWID;
