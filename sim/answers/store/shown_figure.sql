-- When it is decided what names a panel: what figures read.
CREATE TEMP TABLE shown AS
  SELECT point_id, run_id, place, x, shown_x.text AS x_text, dense_rank() OVER (ORDER BY first_panel) AS panel,
    dense_rank() OVER (ORDER BY first_panel, first_curve) AS curve, dense_rank() OVER (ORDER BY first_color) AS color,
    nullif(varied, '') AS varied, label.curve AS curve_label, label.panel AS panel_label
  FROM (
    SELECT *, min(place) OVER (PARTITION BY panel) AS first_panel, min(place) OVER (PARTITION BY panel, curve) AS first_curve,
      min(place) OVER (PARTITION BY curve) AS first_color
    FROM shown_point JOIN shown_label USING (point_id)
  ) AS label JOIN shown_x USING (point_id);
CREATE UNIQUE INDEX temp.shown_by_point ON shown(point_id);

CREATE TEMP TABLE shown_axis AS
  SELECT path, iif(path = 'cluster.gpus', 'GPUs', path) AS title, asked, count(DISTINCT x) AS n, min(x) AS low, max(x) AS high,
    max(x) >= 8 * min(x) AND min(x) > 0 AND (SELECT min(typeof(value) <> 'text' AND text NOT IN ('true', 'false')) FROM shown_setting WHERE path = shown_asked.path) AS logarithmic,
    (SELECT min(typeof(value) <> 'text' AND text NOT IN ('true', 'false')) FROM shown_setting WHERE path = shown_asked.path) AS number,
    -- what all points have in common, where it is not in the names of curves
    (SELECT ltrim(group_concat(text, ''), ', ') FROM (
      SELECT text FROM shown_part WHERE role = 'all' AND point_id = (SELECT min(point_id) FROM shown_part) ORDER BY place)) AS common,
    condition
  FROM shown, shown_asked;

-- At most twelve of the values, all of which may be texts.
CREATE TEMP TABLE shown_tick AS
  SELECT x, x_text AS text
  FROM (SELECT x, min(x_text) AS x_text, row_number() OVER (ORDER BY x) - 1 AS place, count(*) OVER () AS n FROM shown GROUP BY x)
  WHERE place % ((n + 11) / 12) = 0 OR NOT (SELECT number FROM shown_axis);

-- Points that have a bar in figures of bars: all, or, of more than 16, the first and the last of each curve on the x axis.
CREATE TEMP TABLE shown_bar AS
  SELECT point_id, row_number() OVER (ORDER BY place) AS place,
    (SELECT iif(count(*) > 16, 'of each curve its ends', NULL) FROM shown) AS chosen
  FROM (SELECT *, min(x) OVER (PARTITION BY curve) AS first, max(x) OVER (PARTITION BY curve) AS last FROM shown)
  WHERE (SELECT count(*) FROM shown) <= 16 OR x = first OR x = last;
