SELECT label, sentence, id, printf('%s, %d to %d GPUs: %.2f to %.2f TFLOPS/GPU', label, small_gpus, large_gpus, small_tflops_per_gpu,
  large_tflops_per_gpu), created_utc, version
FROM v_loss
WHERE command = (SELECT max(command) FROM v_explanation)
ORDER BY id
