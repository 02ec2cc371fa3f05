/* SPDX-License-Identifier: MIT */
/* json.c - see json.h. RFC 8259. */
#include "json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* The size in bytes of the UTF-8 character that begins here; 0: not a valid one. RFC 3629, 4: no surrogates, no
 * overlong form, nothing above U+10FFFF. */
static size_t character(const unsigned char *at)
{
    static const struct {
        unsigned char from, to; /* of the first byte */
        unsigned char least, most; /* of the second */
        size_t size;
    } rows[] = {{0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (at[0] < rows[i].from || at[0] > rows[i].to)
            continue;
        if (rows[i].size > 1 && (at[1] < rows[i].least || at[1] > rows[i].most))
            return 0;
        for (size_t n = 2; n < rows[i].size; n++)
            if (at[n] < 0x80 || at[n] > 0xbf)
                return 0;
        return rows[i].size;
    }
    return 0;
}

void json_string(const char *text)
{
    if (text == NULL) {
        (void)fputs("null", stdout);
        return;
    }
    (void)putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        size_t size = character(at);
        if (size == 0)
            (void)fputs("\\ufffd", stdout);
        else if (*at == '"' || *at == '\\')
            (void)printf("\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            (void)printf("\\u%04x", *at);
        else
            (void)fwrite(at, 1, size, stdout);
        at += size > 0 ? size : 1;
    }
    (void)putchar('"');
}

void json_number(int64_t number, int64_t least)
{
    if (number < least)
        (void)fputs("null", stdout);
    else
        (void)printf("%" PRId64, number);
}
