-- Schema 7 adds fits of the GEMM model (`flopcast calibrate fit --db`): every measured product beside its prediction.

CREATE TABLE gemm_fit (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  version TEXT NOT NULL,
  measured TEXT NOT NULL -- the folder of measurements
) STRICT;

CREATE TABLE gemm_fit_row (
  fit_id INTEGER NOT NULL REFERENCES gemm_fit ON DELETE CASCADE,
  gpu TEXT NOT NULL,
  dtype TEXT NOT NULL,
  use TEXT NOT NULL CHECK (use IN ('fitted', 'held out', 'narrow')), -- narrow: outside the model
  m INTEGER NOT NULL,
  n INTEGER NOT NULL,
  k INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  row_pieces REAL NOT NULL, -- kernel/gemm.h
  measured_s REAL NOT NULL,
  predicted_s REAL NOT NULL
) STRICT;
CREATE INDEX gemm_fit_row_by_fit ON gemm_fit_row(fit_id);

-- The newest fit.
CREATE VIEW v_gemm_row AS
  SELECT *, predicted_s / measured_s - 1 AS error FROM gemm_fit_row WHERE fit_id = (SELECT max(id) FROM gemm_fit);
