/* SPDX-License-Identifier: MIT */
/* json.h - JSON values on stdout, for --json. The caller writes the punctuation between them. */
#ifndef HOLDFAST_TOOL_JSON_H
#define HOLDFAST_TOOL_JSON_H

#include <stdint.h>

/* A string; bytes that are not UTF-8 become U+FFFD. NULL: null. */
void json_string(const char *text);
/* A number; null if it is below `least`, which means that it is not known. */
void json_number(int64_t number, int64_t least);

#endif
