-- Schema 21 adds jobs on nodes of two kinds (sim/scenario/kinds.h); NULL where there is one. Table program has a row of each kind.

ALTER TABLE point ADD COLUMN second_gpu TEXT;             -- the GPU of the second kind
ALTER TABLE point ADD COLUMN first_micro_batch INTEGER;   -- samples that a GPU of the first kind computes on at once
ALTER TABLE point ADD COLUMN second_micro_batch INTEGER;

-- And months of training beside nodes that get slow: the share of the time by which steps took longer. NULL: before schema 21
ALTER TABLE goodput_point ADD COLUMN slowed REAL;
