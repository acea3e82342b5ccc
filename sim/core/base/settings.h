/* Settings as lists. A section of settings is a file, SECTION_settings.h, a line a setting, which
 * says all of it:
 *
 *     #define SETTINGS_OF ddp_options
 *
 *     SETTING(BOOL, zero_grad, true, "gradients are let go of after a step; false: they add up")
 *     SETTING_AS(NUMBER, "bucket_cap", bucket_cap_bytes, 25 * 0x1p20, "bucket_cap_mb",
 *         .dimension = DIM_BYTES, .min = 1, .max = 0x1p50)
 *
 *     #undef SETTINGS
 *     #undef SETTINGS_OF
 *
 * kind, member, default, help, and what else its struct config_field has (config/config.h).
 * SETTING_AS: its key is not the member's name. SETTING_IN: the same, and the member lies in a
 * struct within, which is declared elsewhere. An ENUM is one of those that .names has the names of.
 * Comments say what a user does not ask: sources, and where it is modelled.
 *
 * The file is included for the members of its struct, for their defaults, and for the keys:
 *
 *     struct ddp_options {
 *     #define SETTINGS SETTING_MEMBER
 *     #include "strategy/ddp_settings.h"
 *     };
 *
 * then with SETTING_DEFAULT in the braces of a struct ddp_options, and with SETTING_FIELD in
 * those of an array of struct config_field. */
#ifndef FLOPCAST_BASE_SETTINGS_H
#define FLOPCAST_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define SETTING_FORM_(settings, form) settings##form
#define SETTING_FORM(settings, form) SETTING_FORM_(settings, form)
#define SETTING(...) SETTING_FORM(SETTINGS, )(__VA_ARGS__)
#define SETTING_AS(...) SETTING_FORM(SETTINGS, _AS)(__VA_ARGS__)
#define SETTING_IN(...) SETTING_FORM(SETTINGS, _IN)(__VA_ARGS__)

typedef int64_t setting_INT;
typedef double setting_NUMBER;
typedef bool setting_BOOL;
typedef int setting_ENUM;
typedef const char *setting_STRING;

#define SETTING_MEMBER(kind, member, ...) setting_##kind member;
#define SETTING_MEMBER_AS(kind, key, member, ...) setting_##kind member;
#define SETTING_MEMBER_IN(...)

#define SETTING_DEFAULT(kind, member, value, ...) .member = (value),
#define SETTING_DEFAULT_AS(kind, key, member, value, ...) .member = (value),
#define SETTING_DEFAULT_IN SETTING_DEFAULT_AS

/* Beyond these a value is a slip of the pen, not an experiment; they also keep every size within
 * int64. */
enum {
    SETTING_MAX_TOKENS = 1 << 24, /* of one sequence; the longest contexts so far are near 10^6 */
    SETTING_MAX_BATCH = 1 << 20,
    SETTING_MAX_INTERVAL = 1 << 12,
    SETTING_MAX_RANK = 1 << 16,
    SETTING_MAX_STAGES = 1 << 12,
    SETTING_MAX_LAYERS = 1 << 12,
    SETTING_MAX_IMBALANCE = 1 << 10,
    SETTING_MAX_SPREAD = 10,
    SETTING_MAX_SMS = 1 << 10,
    SETTING_KILO_TOKENS = 1 << 10, /* a context of 8k is one of 8192 */
    /* Elements of a collective of the plan: with 10^12 parameters a million collectives. */
    SETTING_MIN_GATHERED = 1000000,
};

#endif
