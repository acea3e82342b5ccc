-- Schema 10 adds what tells the points of a run apart, for the names of curves and bars.

-- Settings that differ between points which are alike in model, strategy, micro-batch and GPUs; sequence length, number format and cluster
-- also where they differ at all: "attention flash, topology h100-8x400g-rail". A point that nothing tells apart has no row.
CREATE VIEW v_varied AS
  WITH setting AS (
    SELECT
      run_id, point.id AS point_id, model, strategy, micro_batch, gpus, replace(substr(json_tree.path, 3), '"', '') AS path, json_tree.id AS place,
      CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE coalesce(CAST(atom AS TEXT), '-') END AS value
    FROM point JOIN v_newest_run AS run ON run.id = run_id JOIN json_tree(point.config)
    -- Not what a stack's or cluster's file brings, which stands without a line: the file itself tells it.
    WHERE json_tree.key = 'value' AND json_extract(point.config, json_tree.path || '.origin') NOT LIKE '%.yaml'
  ),
  told AS (
    SELECT *,
      min(value) OVER alike <> max(value) OVER alike
        OR (path IN ('train.seq_len', 'train.precision', 'cluster.topology') AND min(value) OVER whole <> max(value) OVER whole) AS tells
    FROM setting
    WHERE path NOT IN ('model', 'strategy', 'fsdp.sharding_strategy', 'deepspeed.zero_optimization.stage', 'train.micro_batch', 'cluster.gpus')
      AND path NOT LIKE 'published.%'
    WINDOW alike AS (PARTITION BY run_id, model, strategy, micro_batch, gpus, path), whole AS (PARTITION BY run_id, path)
  )
  SELECT run_id, point_id, group_concat(part, ', ') AS varied
  FROM (
    SELECT run_id, point_id,
      CASE path
        WHEN 'train.seq_len' THEN value || ' tokens'
        WHEN 'train.precision' THEN value
        -- The last name of a dotted path; of a file the name without folder and ending.
        ELSE replace(path, rtrim(path, replace(path, '.', '')), '') || ' '
          || iif(value LIKE '%.yaml', replace(replace(value, rtrim(value, replace(value, '/', '')), ''), '.yaml', ''), value)
      END AS part
    FROM told
    WHERE tells
    ORDER BY point_id, place
  )
  GROUP BY run_id, point_id;
