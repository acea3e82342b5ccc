/* How much nearer predicted ratios are than those of a rule with one parameter, a loss of so much of the speed with each doubling of the GPUs:
   the loss by least squares on ratios of rows that fits rest on, then 1 - mean |error| / mean |error of the rule| of all other ratios. 1 is
   perfect, 0 no better than the rule. */
CREATE TEMP TABLE IF NOT EXISTS rule AS
SELECT count(*) AS n, sum(doublings * (1 - measured_ratio)) / sum(doublings * doublings) AS loss FROM run WHERE fitted AND doublings > 0;

--
SELECT 'a loss of ' || fixed(100 * loss, 2) || ' % with each doubling of the GPUs, fitted to ' || rule.n || ' ratios that fits rest on, is '
  || fixed(100 * mean_of_rule, 1) || ' points off the other ' || others.n || ' in
the mean; predictions ' || fixed(100 * mean, 1) || ': a skill of ' || fixed(100 * (1 - mean / mean_of_rule), 0) || ' %' AS ""
FROM rule, (SELECT count(*) AS n, avg(abs(predicted_ratio - measured_ratio)) AS mean, avg(abs(1 - loss * doublings - measured_ratio)) AS mean_of_rule
  FROM run, rule WHERE NOT fitted AND doublings > 0) AS others
WHERE mean_of_rule > 0;
