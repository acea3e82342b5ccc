-- The answer, a sentence a row, as `flopcast run` gives it: of one point its speed and whether it fits; of curves over GPUs (four at
-- most, else their range) what they lose; else the fastest point. Then what does not fit.
WITH p AS (
  SELECT place, point.*, verdict,
    printf('%s %s, batch %d%s', model, strategy, micro_batch, coalesce(', ' || varied, '')) AS name,
    with_interval(tokens_per_s_per_gpu, tokens_per_s_per_gpu_low, tokens_per_s_per_gpu_high, iif(tokens_per_s_per_gpu < 100, 2, 0)) AS speed,
    count(*) OVER () AS n, sum(point.status = 'oom') OVER () AS ooms,
    iif(seq_len > 1, 'tokens/s', 'images/s or samples/s') AS unit
  FROM shown JOIN point ON point.id = point_id JOIN v_verdict USING (point_id)
), e AS (
  SELECT name, curve, place, gpus, min(gpus) OVER c AS smallest, max(gpus) OVER c AS largest, tflops_per_gpu AS t, published_tflops_per_gpu AS published,
    with_interval(tflops_per_gpu, tflops_per_gpu_low, tflops_per_gpu_high, 2) AS said
  FROM p WHERE status = 'ok'
  WINDOW c AS (PARTITION BY curve)
), ends AS (
  SELECT a.name, a.place, a.gpus AS smallest, b.gpus AS largest, a.said AS first, b.said AS last, 100 * (1 - b.t / a.t) AS loss,
    100 * (1 - b.published / a.published) AS published, count(*) OVER () AS curves
  FROM e AS a JOIN e AS b USING (curve)
  WHERE a.gpus = a.smallest AND b.gpus = b.largest AND a.gpus < b.gpus
), fast AS (
  SELECT * FROM p WHERE status = 'ok' AND NOT EXISTS (SELECT * FROM ends) ORDER BY tokens_per_s_per_gpu DESC, place LIMIT 1
)
SELECT sentence
FROM (
  SELECT 0 AS part, place, printf('%s%s: %s %s a GPU on %d GPU%s, %.*f %% MFU; %s', iif(n > 1, printf('Fastest of %d: ', n), ''), name, speed, unit, gpus,
    iif(gpus = 1, '', 's'), iif(mfu < 0.1, 1, 0), 100 * mfu, verdict) AS sentence
  FROM fast
  UNION ALL
  SELECT 1, place, printf('%s: %s %.1f %% from %d to %d GPUs, %s to %s TFLOPS/GPU%s', name, iif(loss < 0, 'gains', 'loses'), abs(loss), smallest, largest,
    first, last, iif(published IS NULL, '', printf('; published: %s %.1f %%', iif(published < 0, 'gains', 'loses'), abs(published))))
  FROM ends WHERE curves <= 4
  UNION ALL
  SELECT 2, 0, printf('%d curves lose %.1f to %.1f %% from their smallest to their largest cluster', max(curves), min(loss), max(loss))
  FROM ends HAVING max(curves) > 4
  UNION ALL
  SELECT 3, min(place), iif(count(*) = max(n), iif(count(*) = 1, '', printf('None of %d points fits. ', count(*))), printf('%d of %d points do not fit. ', count(*), max(n)))
    || iif(count(*) = max(n), name || ': ' || verdict, '')
  FROM p WHERE status = 'oom' HAVING count(*) > 0
)
ORDER BY part, place
