/* Conditions of settings, as texts in their tables: "train.optimizer = muon", "fsdp.version = 1 &
 * ...".
 *
 * A part is a path, '=' with values that '|' separates or '>' with a number, and the parts of a
 * condition are joined by '&'. Values are compared as config_value_text() writes them, so a
 * condition says what a file would. A part that the table cannot decide (of the model, say) goes to
 * the caller. A table that names an unknown path is a BUG, which the first evaluation finds. */
#include "config/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A text without the blanks around it. */
static const char *condition_trim(const char *text, size_t n, struct arena *arena)
{
    while (n > 0 && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    return arena_printf(arena, "%.*s", (int)n, text);
}

/* "a | b | c" has the value; *wanted: "a, b or c". */
static bool condition_lists(
    const char *list, const char *value, const char **wanted, struct arena *arena)
{
    bool has = false;
    *wanted = "";
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, "|");
        const char *one = condition_trim(at, n, arena);
        at += n + (at[n] == '|');
        has = has || strcmp(one, value) == 0;
        *wanted = arena_printf(arena, "%s%s%s", *wanted, !**wanted ? "" : *at ? ", " : " or ", one);
    }
    return has;
}

static bool condition_part(struct config_unmet *unmet, const char *part,
    const struct config_table *table, const void *from, struct arena *arena)
{
    size_t path_end = strcspn(part, "=>");
    BUG_IF(!part[path_end], "'%s' is no condition", part);
    const char *right = condition_trim(part + path_end + 1, strlen(part + path_end + 1), arena);
    size_t at = 0;
    unmet->path = condition_trim(part, path_end, arena);
    const struct config_field *field = config_field_at(table, unmet->path, &at);
    unmet->value = config_value_text(field, (const char *)from + at, arena);
    if (part[path_end] == '=')
        return condition_lists(right, unmet->value, &unmet->wanted, arena);
    double least = strtod(right, NULL);
    unmet->wanted = field->type == FIELD_INT ? arena_printf(arena, "%.0f or more", least + 1)
                                             : arena_printf(arena, "more than %s", right);
    return strtod(unmet->value, NULL) > least;
}

bool config_condition(struct config_unmet *unmet, const char *condition,
    const struct config_table *table, const void *from, config_decide *decide, const void *self,
    struct arena *arena)
{
    for (const char *at = condition; *at;) {
        size_t n = strcspn(at, "&");
        const char *part = condition_trim(at, n, arena);
        at += n + (at[n] == '&');
        enum config_decided decided = decide ? decide(unmet, part, self) : CONFIG_NOT_DECIDED;
        if (decided == CONFIG_UNMET ||
            (decided == CONFIG_NOT_DECIDED && !condition_part(unmet, part, table, from, arena)))
            return false;
    }
    return true;
}
