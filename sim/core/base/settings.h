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

/* Bounds that many have. */
#define SETTING_FRACTION .dimension = DIM_FRACTION, .min = 0, .max = 1
#define SETTING_ELEMENTS .min = 0, .max = 0x1p50 /* of tensors; 0: as its help says */

#endif
