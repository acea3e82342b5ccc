--
-- ### What other simulators state
--
-- Each on its own data, so not comparable line by line (`claims.csv`).
--
SELECT simulator, what, error, source, kind FROM claims;
