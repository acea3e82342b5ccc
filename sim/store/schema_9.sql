-- Schema 9 adds checks of logs of nccl-tests (`flopcast calibrate check LOG --db`): measured beside predicted.

CREATE TABLE nccl_check (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  measured TEXT NOT NULL -- the log
) STRICT;

-- One row: what ran.
CREATE TABLE nccl_check_table (
  fit_id INTEGER PRIMARY KEY REFERENCES nccl_check ON DELETE CASCADE,
  topology TEXT NOT NULL, -- cluster file
  gpu TEXT NOT NULL,      -- the cluster's
  collective TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  large_error REAL,       -- median |predicted / measured - 1| over sizes from 1 MiB; NULL: none
  small_error REAL        -- the same below 64 KiB
) STRICT;

CREATE TABLE nccl_check_point (
  fit_id INTEGER NOT NULL REFERENCES nccl_check ON DELETE CASCADE,
  bytes INTEGER NOT NULL,
  measured_s REAL NOT NULL,
  predicted_s REAL NOT NULL,
  bus_bytes REAL NOT NULL, -- busbw = bus_bytes / time
  algorithm TEXT NOT NULL,
  protocol TEXT NOT NULL
) STRICT;
CREATE INDEX nccl_check_point_by_check ON nccl_check_point(fit_id);

-- The newest check.
CREATE VIEW v_nccl_check AS
  SELECT
    measured AS log, nccl_check_table.*, bytes, measured_s, predicted_s, predicted_s / measured_s - 1 AS error,
    bus_bytes / measured_s AS measured_busbw, bus_bytes / predicted_s AS predicted_busbw, algorithm, protocol
  FROM nccl_check_point JOIN nccl_check_table USING (fit_id) JOIN nccl_check ON nccl_check.id = fit_id
  WHERE fit_id = (SELECT max(id) FROM nccl_check)
  ORDER BY bytes;
