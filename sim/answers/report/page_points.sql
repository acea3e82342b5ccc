SELECT printf('%s %s, batch %d, %d GPU%s%s', model, strategy, micro_batch, gpus, iif(gpus = 1, '', 's'), coalesce(', ' || varied, '')) AS "point", seed AS "seed", digest AS "digest of all events"
FROM shown JOIN point ON point.id = point_id
ORDER BY place
