/* Private to sim/config: libyaml's errors as sentences for users. */
#ifndef FLOPCAST_CONFIG_SYNTAX_H
#define FLOPCAST_CONFIG_SYNTAX_H

#include "base/status.h"

#include <yaml.h>

/* Reports why the parser stopped. name is what the text is called in messages; text is what the parser was given. */
enum status config_syntax_error(
    const yaml_parser_t *parser, const char *name, const char *text, size_t n, struct diag *diag);

#endif
