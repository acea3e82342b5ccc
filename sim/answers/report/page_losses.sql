SELECT label, sentence, created_utc, version
FROM v_loss
WHERE command = (SELECT max(command) FROM v_explanation)
ORDER BY id
