-- Schema 2 adds measurements of real machines: what `flopcast calibrate import` reads.

-- One row for each file that was imported. The digest is of the file's content (after gunzip), so the same file is noticed under
-- any name.
CREATE TABLE measurement_source (
  id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  format TEXT NOT NULL CHECK (format IN ('nccl-tests', 'nsys', 'kineto')),
  file TEXT NOT NULL,        -- as given on the command line
  digest TEXT NOT NULL UNIQUE,
  source TEXT,               -- where it was published; NULL: not stated, as in the columns below
  gpu TEXT,
  network TEXT,
  nccl_version TEXT,
  note TEXT,
  healthy INTEGER NOT NULL DEFAULT 1 CHECK (healthy IN (0, 1)), -- 0: the source shows it as a fault
  partial INTEGER NOT NULL DEFAULT 0 CHECK (partial IN (0, 1))  -- 1: an excerpt
) STRICT;

-- Collectives by size. Of nccl-tests a row is the mean over its iterations. Of a Kineto trace a row is one kernel on one rank, which
-- includes waiting for the last rank to arrive: the shortest of alike rows is nearest to the transfer itself.
CREATE TABLE collective_measurement (
  source_id INTEGER NOT NULL REFERENCES measurement_source ON DELETE CASCADE,
  position INTEGER NOT NULL, -- line of a text file; number of the result or event elsewhere
  collective TEXT NOT NULL,  -- "all_reduce", "all_gather" ...
  ranks INTEGER NOT NULL CHECK (ranks >= 1),
  nodes INTEGER CHECK (nodes >= 1),
  algorithm TEXT,            -- NULL: NCCL's own choice, or not stated
  protocol TEXT,
  dtype TEXT NOT NULL,       -- as the file names it
  bytes INTEGER NOT NULL CHECK (bytes > 0), -- the larger of what a rank sends and receives, as nccl-tests counts
  out_of_place_s REAL CHECK (out_of_place_s > 0),
  in_place_s REAL CHECK (in_place_s > 0),
  PRIMARY KEY (source_id, position),
  CHECK (coalesce(out_of_place_s, in_place_s) IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel_name (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- GPU kernels of a profile. An NCCL kernel has the collective but not algorithm and protocol: NCCL's kernels are generic, and the
-- "RING_LL" in a kernel's name does not say which of them ran.
CREATE TABLE kernel_measurement (
  source_id INTEGER NOT NULL REFERENCES measurement_source ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name_id INTEGER NOT NULL REFERENCES kernel_name,
  process INTEGER,           -- its id in the profile; NULL in a trace of one process
  device INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  start_s REAL NOT NULL,     -- on the clock of the file
  duration_s REAL NOT NULL CHECK (duration_s >= 0),
  collective TEXT,           -- of an NCCL kernel
  nvtx_range TEXT,           -- innermost push/pop range around its launch
  PRIMARY KEY (source_id, position)
) STRICT, WITHOUT ROWID;

-- Bandwidths as nccl-tests prints them, bytes per second.
CREATE VIEW v_collective_measurement AS
  SELECT
    source_id, position, file, source, gpu, network, nccl_version, healthy, partial,
    collective, ranks, nodes, algorithm, protocol, dtype, bytes, out_of_place_s, in_place_s,
    bytes / out_of_place_s AS algbw_Bps, bytes / out_of_place_s * bus_factor AS busbw_Bps,
    bytes / in_place_s AS in_place_algbw_Bps, bytes / in_place_s * bus_factor AS in_place_busbw_Bps
  FROM (
    SELECT *, CASE
      WHEN collective = 'all_reduce' THEN 2.0 * (ranks - 1) / ranks
      WHEN collective IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') THEN 1.0 * (ranks - 1) / ranks
      ELSE 1.0 END AS bus_factor
    FROM collective_measurement
  ) JOIN measurement_source ON measurement_source.id = source_id;

CREATE VIEW v_kernel_measurement AS
  SELECT source_id, position, file, gpu, name, process, device, stream, start_s, duration_s, collective, nvtx_range
  FROM kernel_measurement
  JOIN kernel_name ON kernel_name.id = name_id
  JOIN measurement_source ON measurement_source.id = source_id;
