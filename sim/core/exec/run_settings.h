/* Section run (base/settings.h); the allocator's, which are behind these:
 * exec/allocator_settings.h.
 */
#define SETTINGS_OF exec_options

SETTING(INT, steps, 2, "measured steps", .min = 1, .max = EXEC_MAX_STEPS)
/* At least this number (exec.h). */
SETTING(INT, warmup_steps, 2,
    "steps run before, not measured; noise begins three quarters through the last", .min = 0,
    .max = EXEC_MAX_STEPS)
SETTING(INT, seed, 1, "of all random streams", .min = 0, .max = 0x1p62)
/* auto folds when there is no noise, and as slowest of large jobs with it. */
SETTING(ENUM, fold, FOLD_AUTO,
    "simulate one rank for all where they are alike, and of a large job with noise the nodes of "
    "the slowest GPUs; slowest: those of any with noise",
    .names = exec_fold_names)

#undef SETTINGS
#undef SETTINGS_OF
