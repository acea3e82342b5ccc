-- Schema 11 says which explanations are of one command (`flopcast explain --db`), so that a figure shows its curves together.

ALTER TABLE explanation ADD COLUMN first_id INTEGER; -- the first one of the command; NULL: this is it

-- command: one id for all curves of a command, the newest has the largest; curve: which of them.
CREATE VIEW v_explanation AS
  SELECT *, coalesce(first_id, id) AS command, row_number() OVER (PARTITION BY coalesce(first_id, id) ORDER BY id) AS curve
  FROM explanation;
