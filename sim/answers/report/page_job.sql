-- How wide the interval of the points is, as a share of the prediction, by GPU: the narrowest and the widest, and on how many GPUs.
WITH range AS (
  SELECT place, gpu, gpus, tflops_per_gpu_low / tflops_per_gpu AS low, tflops_per_gpu_high / tflops_per_gpu AS high
  FROM shown JOIN point ON point.id = point_id WHERE tflops_per_gpu_low > 0
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY gpu ORDER BY high - low, place) AS up,
    row_number() OVER (PARTITION BY gpu ORDER BY high - low DESC, place) AS down
  FROM range
)
SELECT narrow.gpu, narrow.gpus, narrow.low, narrow.high, wide.gpus, wide.low, wide.high
FROM ranked AS narrow JOIN ranked AS wide USING (gpu)
WHERE narrow.up = 1 AND wide.down = 1
ORDER BY narrow.place
