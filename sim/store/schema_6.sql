-- Schema 6 adds what the model leaves out to the bands of samples, and an interval to every row of a validation.

-- The 90 % band with what the model leaves out (sim/scenario/discrepancy.h), and the log-standard deviation of that.
ALTER TABLE band ADD COLUMN tflops_per_gpu_low REAL;
ALTER TABLE band ADD COLUMN tflops_per_gpu_high REAL;
ALTER TABLE band ADD COLUMN step_time_s_low REAL;
ALTER TABLE band ADD COLUMN step_time_s_high REAL;
ALTER TABLE band ADD COLUMN tokens_per_s_per_gpu_low REAL;
ALTER TABLE band ADD COLUMN tokens_per_s_per_gpu_high REAL;
ALTER TABLE band ADD COLUMN discrepancy REAL;

DROP VIEW v_band;
CREATE VIEW v_band AS
  SELECT v_scaling.*, samples, tflops_per_gpu_p05, tflops_per_gpu_p50, tflops_per_gpu_p95, step_time_s_p05, step_time_s_p50,
    step_time_s_p95, tokens_per_s_per_gpu_p05, tokens_per_s_per_gpu_p50, tokens_per_s_per_gpu_p95, tflops_per_gpu_low,
    tflops_per_gpu_high, step_time_s_low, step_time_s_high, tokens_per_s_per_gpu_low, tokens_per_s_per_gpu_high, discrepancy
  FROM v_scaling JOIN band USING (point_id);

-- `flopcast validate --samples` (sim/validate/interval.h); NULL without. Tokens/s per GPU: the 90 % interval of a measurement, and
-- the part of it that errors of numbers make.
ALTER TABLE validation_row ADD COLUMN predicted_lo REAL;
ALTER TABLE validation_row ADD COLUMN predicted_hi REAL;
ALTER TABLE validation_row ADD COLUMN numbers_lo REAL;
ALTER TABLE validation_row ADD COLUMN numbers_hi REAL;
ALTER TABLE validation_row ADD COLUMN discrepancy REAL; -- log-standard deviation, from rows of other families
