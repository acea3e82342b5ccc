/* By recursive descent, one function a level. */
#include "exchange/expression.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static struct expression_value read_sum(struct expression *e);

static char expression_next_of(struct expression *e)
{
    while (isspace((unsigned char)*e->at))
        e->at++;
    return *e->at;
}

static void append_items(
    struct expression *e, struct expression_value *list, const int64_t *items, int n)
{
    e->bad |= list->n + n > EXPRESSION_MOST_ITEMS;
    if (e->bad)
        return;
    if (!list->items || list->n + n > list->room) {
        int64_t *before = list->items;
        list->room = 2 * (list->n + n) + 2;
        list->items = ARENA_ARRAY(e->arena, int64_t, list->room);
        if (before)
            memcpy(list->items, before, (size_t)list->n * sizeof *before);
    }
    if (n > 0)
        memcpy(list->items + list->n, items, (size_t)n * sizeof *items);
    list->n += n;
}

/* [0, 1,] */
static struct expression_value expression_read_list(struct expression *e)
{
    struct expression_value out = {0};
    append_items(e, &out, NULL, 0); /* of no item, too, it is a list */
    e->at++;
    while (!e->bad && expression_next_of(e) != ']') {
        bool octal = e->at[0] == '0' && isdigit((unsigned char)e->at[1]);
        struct expression_value item = read_sum(e);
        e->bad |= item.items || octal || (expression_next_of(e) != ',' && *e->at != ']');
        append_items(e, &out, &item.number, 1);
        e->at += !e->bad && *e->at == ',';
    }
    e->at += !e->bad;
    return out;
}

static struct expression_value read_factor(struct expression *e)
{
    struct expression_value out = {0};
    char c = expression_next_of(e);
    if ((c == '(' || c == '[') && e->depth < EXPRESSION_MOST_DEPTH) {
        e->depth++;
        e->at += c == '(';
        out = c == '(' ? read_sum(e) : expression_read_list(e);
        e->depth--;
        if (c == '(') {
            e->bad |= expression_next_of(e) != ')';
            e->at += *e->at == ')';
        }
    } else if (isdigit((unsigned char)c)) {
        char *end = NULL;
        out.number = strtoll(e->at, &end, 10);
        e->at = end;
    } else if (e->name) {
        out.number = e->name(e, e->self);
    } else {
        e->bad = true;
    }
    return out;
}

static struct expression_value repeat_list(
    struct expression *e, struct expression_value list, int64_t times)
{
    struct expression_value out = {0};
    append_items(e, &out, NULL, 0);
    e->bad |= times < 0 || times > EXPRESSION_MOST_ITEMS;
    for (int64_t i = 0; i < times && !e->bad; i++)
        append_items(e, &out, list.items, list.n);
    return out;
}

static struct expression_value read_product(struct expression *e)
{
    struct expression_value value = read_factor(e);
    while (!e->bad && expression_next_of(e) && strchr("*/%", *e->at)) {
        char operation = *e->at++;
        struct expression_value other = read_factor(e);
        if (value.items && !other.items && operation == '*')
            value = repeat_list(e, value, other.number);
        else if (value.items || other.items)
            e->bad = true;
        else if (operation == '*')
            e->bad |= __builtin_mul_overflow(value.number, other.number, &value.number);
        else if (other.number <= 0) /* also a number that is not known */
            e->bad |= !e->unknown;
        else
            value.number =
                operation == '/' ? value.number / other.number : value.number % other.number;
    }
    return value;
}

static struct expression_value read_sum(struct expression *e)
{
    struct expression_value value = read_product(e);
    while (!e->bad && expression_next_of(e) && strchr("+-", *e->at)) {
        char operation = *e->at++;
        struct expression_value other = read_product(e);
        if (value.items && other.items && operation == '+')
            append_items(e, &value, other.items, other.n);
        else if (value.items || other.items)
            e->bad = true;
        else
            e->bad |= operation == '+'
                          ? __builtin_add_overflow(value.number, other.number, &value.number)
                          : __builtin_sub_overflow(value.number, other.number, &value.number);
    }
    return value;
}

bool expression_read(struct expression_value *out, struct expression *expression)
{
    *out = read_sum(expression);
    return !expression->bad && expression_next_of(expression) == '\0';
}
