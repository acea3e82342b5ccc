/* Texts in files that the program carries: CMakeLists.txt makes a list of MODULE/tables/NAME.sql,
 * so that another file is another text and no line of C. */
#ifndef FLOPCAST_BASE_TEXTS_H
#define FLOPCAST_BASE_TEXTS_H

#include <stddef.h>
#include <string.h>

/* A list ends with {NULL, NULL}; by name. */
struct text {
    const char *name, *text; /* "by_gpus" */
};

/* NULL: there is none. */
static inline const struct text *texts_find(const struct text *list, const char *name)
{
    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->name ? list : NULL;
}

#endif
