/* A section with one setting of each form and kind, for test_settings.c. */
#define SETTINGS_OF sample_options

SETTING(INT, count, 3, "how many", .min = 1, .max = 9)
SETTING(BOOL, shown, true, "whether")
SETTING(STRING, label, "none", "what it is called")
SETTING_AS(NUMBER, "delay", delay_s, 2e-6, "how long", .dimension = DIM_SECONDS, .max = 60)
SETTING_IN(ENUM, "kind", within.kind, 1, "which", .names = sample_names)

#undef SETTINGS
#undef SETTINGS_OF
