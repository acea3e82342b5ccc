--
-- correlations of filed numbers, of 0.5 or more:
SELECT number, fit, other AS "goes with", other_fit AS fit, correlation AS "correlation||2"
FROM pair WHERE abs(correlation) >= 0.5 ORDER BY abs(correlation) DESC, place, other_place; -- assumed: below a pair is no news
