/* Assumed: at 0.95 either error is three times (1 / sqrt(1 - r^2) = 3.2) what it would be if the other number were known. */
SELECT number || ' (' || fit || ') and ' || other || ' (' || other_fit || ') have a correlation of ' || fixed(correlation, 2)
  || ': the data determine one number of the two; measure one of them, or give it a prior' AS ""
FROM pair WHERE abs(correlation) > 0.95 ORDER BY abs(correlation) DESC, place, other_place;
