/* UTF-8 (RFC 3629), as files of users may break it. */
#ifndef FLOPCAST_BASE_UTF8_H
#define FLOPCAST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The first character of text[0 .. n) into *character; n > 0. Returns its bytes, 1 to 4; 0: it is
 * no UTF-8 (a truncated or overlong form, a surrogate, above U+10FFFF). */
size_t utf8_character(const char *text, size_t n, uint32_t *character);

/* Columns of a terminal that the first n bytes of a text take, by its characters (one
 * each). */
int utf8_width(const char *text, int n);
/* The bytes of as many characters from the text's begin. */
int utf8_bytes(const char *text, int width);

/* U+FFFD, which stands for a byte that is no UTF-8. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

#endif
