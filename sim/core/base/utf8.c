#include "base/utf8.h"

#include <stdbool.h>

size_t utf8_character(const char *text, size_t n, uint32_t *character)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least; /* a smaller value would be an overlong form */
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    unsigned char lead = (unsigned char)*text;
    for (size_t extra = 0; extra < 4 && extra < n; extra++) {
        if ((lead & forms[extra].mask) != forms[extra].lead)
            continue;
        uint32_t value = lead & (unsigned char)~forms[extra].mask;
        for (size_t i = 1; i <= extra; i++) {
            if (((unsigned char)text[i] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | ((unsigned char)text[i] & 0x3f);
        }
        *character = value;
        bool surrogate = value >= 0xd800 && value <= 0xdfff;
        return value >= forms[extra].least && value <= 0x10ffff && !surrogate ? extra + 1 : 0;
    }
    return 0;
}

static bool utf8_begins(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

int utf8_width(const char *text, int n)
{
    int width = 0;
    for (int i = 0; i < n; i++)
        width += utf8_begins(text[i]);
    return width;
}

int utf8_bytes(const char *text, int width)
{
    int n = 0;
    while (text[n] && (width > 0 || !utf8_begins(text[n])))
        width -= utf8_begins(text[n++]);
    return n;
}
