-- Schema 17: what tells published runs apart, for `flopcast plot validation_sources`.

ALTER TABLE validation_row ADD COLUMN table_file TEXT;  -- of a validation of several tables; NULL: stored before schema 17
ALTER TABLE validation_row ADD COLUMN framework TEXT;   -- the stack profile's name, or ''
ALTER TABLE validation_row ADD COLUMN layout TEXT;      -- axes with more than one rank: 'TP+PP+DP'
ALTER TABLE validation_row ADD COLUMN exposed_share REAL; -- of the predicted step: the compute stream was idle because of communication
