-- Schema 14: how far the memory that was simulated is from what was published, as v_scaling says of speed.

DROP VIEW v_memory;

-- HBM of a GPU by category: at the peak, or what would be required where the point is out of memory.
CREATE VIEW v_memory AS
  SELECT
    run_id, point.id AS point_id, scenario, position, curve, model, strategy, precision, micro_batch, gpus, status,
    hbm_capacity_bytes, peak_allocated_bytes, peak_reserved_bytes, required_bytes, shortfall_bytes, oom_category,
    published_peak_allocated_bytes, published_peak_reserved_bytes,
    parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, gathered_bytes, buffers_bytes, context_bytes, nccl_bytes,
    peak_allocated_bytes / published_peak_allocated_bytes - 1 AS peak_allocated_deviation, -- fraction
    peak_reserved_bytes / published_peak_reserved_bytes - 1 AS peak_reserved_deviation     -- fraction
  FROM point JOIN v_newest_run AS run ON run.id = run_id
  JOIN (
    SELECT
      point_id,
      max(bytes) FILTER (WHERE category = 'parameters') AS parameters_bytes,
      max(bytes) FILTER (WHERE category = 'gradients') AS gradients_bytes,
      max(bytes) FILTER (WHERE category = 'optimizer') AS optimizer_bytes,
      max(bytes) FILTER (WHERE category = 'activations') AS activations_bytes,
      max(bytes) FILTER (WHERE category = 'gathered') AS gathered_bytes,
      max(bytes) FILTER (WHERE category = 'buffers') AS buffers_bytes,
      max(bytes) FILTER (WHERE category = 'context') AS context_bytes,
      max(bytes) FILTER (WHERE category = 'nccl') AS nccl_bytes
    FROM (SELECT point_id, category, coalesce(peak_bytes, required_bytes) AS bytes FROM memory)
    GROUP BY point_id
  ) AS by_category ON by_category.point_id = point.id;
