/* SPDX-License-Identifier: MIT */
/* json.h - values of JSON on stdout, for --json. The caller writes what stands between them. */
#ifndef HOLDFAST_TOOL_JSON_H
#define HOLDFAST_TOOL_JSON_H

#include <stdint.h>

/* A string; bytes that are not UTF-8 become U+FFFD. NULL: null. */
void json_string(const char *text);
/* A number; null if it is below `least`, which means that nobody knows it. */
void json_number(int64_t number, int64_t least);

#endif
