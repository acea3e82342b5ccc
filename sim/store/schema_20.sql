-- Schema 20 adds energy (sim/scenario/energy.h).

ALTER TABLE point ADD COLUMN gpu_power_w REAL;        -- of a GPU alone, mean over the step. NULL: out of memory, or simulated before schema 20
ALTER TABLE point ADD COLUMN energy_per_token_j REAL; -- with host, network and PUE; where images or samples are counted, of one of these

-- What tune's energy is made of; those of before are of another program and are not taken.
ALTER TABLE outcome ADD COLUMN compute_s REAL NOT NULL DEFAULT 0;
