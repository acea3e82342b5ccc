/* Private to exchange: TOML as configurations use it, with config/'s places and errors.
 *
 * Debian 12 has no library for TOML in C. What differs from YAML's flow mappings is the line's form
 * alone: [a.b] opens a mapping, name = value is name: value. So each line is written as YAML of the
 * same line and columns, and config/ reads strings, numbers, booleans and arrays. Not read, and
 * refused with their place: strings of several lines, inline tables, arrays of tables. A table
 * [a.b] is the key "a.b" of the root. */
#ifndef FLOPCAST_EXCHANGE_TOML_H
#define FLOPCAST_EXCHANGE_TOML_H

#include "config/config.h"

enum status toml_parse(
    struct config_doc **out, const char *name, const char *text, size_t n, struct diag *diag);

#endif
