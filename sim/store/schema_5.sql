-- Schema 5 adds fits of NCCL's parameters (`flopcast calibrate fit nccl --db`): what was fitted, on which tables, how well.

CREATE TABLE nccl_fit (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  measured TEXT NOT NULL -- the folder of measurements
) STRICT;

CREATE TABLE nccl_fit_parameter (
  fit_id INTEGER NOT NULL REFERENCES nccl_fit ON DELETE CASCADE,
  position INTEGER NOT NULL,
  key TEXT NOT NULL,          -- of node and cluster files
  family TEXT NOT NULL,       -- the hardware that has it: of its id in the files what follows the fit's name
  unit TEXT NOT NULL,
  value REAL NOT NULL,
  std_error REAL NOT NULL,    -- same unit
  filed_value REAL NOT NULL,  -- in the files
  PRIMARY KEY (fit_id, position)
) STRICT, WITHOUT ROWID;

-- Of the logarithms of two parameters.
CREATE TABLE nccl_fit_covariance (
  fit_id INTEGER NOT NULL REFERENCES nccl_fit ON DELETE CASCADE,
  position INTEGER NOT NULL,
  other INTEGER NOT NULL,
  covariance REAL NOT NULL,
  PRIMARY KEY (fit_id, position, other)
) STRICT, WITHOUT ROWID;

-- A table of nccl-tests.
CREATE TABLE nccl_fit_table (
  fit_id INTEGER NOT NULL REFERENCES nccl_fit ON DELETE CASCADE,
  place INTEGER NOT NULL,
  use TEXT NOT NULL CHECK (use IN ('fit', 'left_out', 'bad')),
  family TEXT NOT NULL,
  source TEXT NOT NULL,
  gpu TEXT NOT NULL,
  topology TEXT NOT NULL,     -- cluster file; '' when none describes the machine
  collective TEXT NOT NULL,
  nodes INTEGER NOT NULL,     -- NVLink domains
  ranks INTEGER NOT NULL,
  note TEXT NOT NULL,
  large_error REAL,           -- median |predicted / measured - 1| over sizes from 1 MiB; NULL: none
  small_error REAL,           -- the same below 64 KiB
  PRIMARY KEY (fit_id, place)
) STRICT, WITHOUT ROWID;

-- The tables that a parameter rests on.
CREATE TABLE nccl_fit_rest (
  fit_id INTEGER NOT NULL REFERENCES nccl_fit ON DELETE CASCADE,
  position INTEGER NOT NULL, -- of the parameter
  place INTEGER NOT NULL,    -- of the table
  PRIMARY KEY (fit_id, position, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE nccl_fit_point (
  fit_id INTEGER NOT NULL REFERENCES nccl_fit ON DELETE CASCADE,
  place INTEGER NOT NULL,     -- of the table
  bytes INTEGER NOT NULL,
  measured_s REAL NOT NULL,
  predicted_s REAL NOT NULL,
  bus_bytes REAL NOT NULL,    -- busbw = bus_bytes / time
  algorithm TEXT NOT NULL,
  protocol TEXT NOT NULL
) STRICT;
CREATE INDEX nccl_fit_point_by_table ON nccl_fit_point(fit_id, place);

-- The newest fit.
CREATE VIEW v_nccl_parameter AS
  SELECT
    parameter.position, key, parameter.family, unit, value, std_error, filed_value,
    count(DISTINCT rest.place) AS tables, count(bytes) AS sizes, group_concat(DISTINCT rest.place) AS places
  FROM nccl_fit_parameter AS parameter
  LEFT JOIN nccl_fit_rest AS rest USING (fit_id, position)
  LEFT JOIN nccl_fit_point USING (fit_id, place)
  WHERE fit_id = (SELECT max(id) FROM nccl_fit)
  GROUP BY parameter.position
  ORDER BY parameter.position;
CREATE VIEW v_nccl_table AS SELECT * FROM nccl_fit_table WHERE fit_id = (SELECT max(id) FROM nccl_fit);
CREATE VIEW v_nccl_point AS
  SELECT
    nccl_fit_table.*, bytes, measured_s, predicted_s, predicted_s / measured_s - 1 AS error,
    bus_bytes / measured_s AS measured_busbw, bus_bytes / predicted_s AS predicted_busbw, algorithm, protocol
  FROM nccl_fit_point JOIN nccl_fit_table USING (fit_id, place)
  WHERE fit_id = (SELECT max(id) FROM nccl_fit);
