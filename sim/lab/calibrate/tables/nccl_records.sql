/* For programs: the parameters in base SI, the unit beside. */
SELECT key AS parameter, family, value, std_error, unit, sizes, places AS rests_on_tables FROM v_nccl_parameter;
