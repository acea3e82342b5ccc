/* A text file as a whole, for tests that compare what was written. Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_HW_READ_ALL_H
#define FLOPCAST_TESTS_HW_READ_ALL_H

#include <stdio.h>

/* NUL-terminated; free it. */
static inline char *read_all(const char *path)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    char *text = NULL;
    size_t n = 0;
    assert_true(getdelim(&text, &n, '\0', in) > 0);
    fclose(in);
    return text;
}

#endif
