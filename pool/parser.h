/* SPDX-License-Identifier: MIT */
/* parser.h - hiredis's reply parser, with a limit on the array sizes that a server may announce. */
#ifndef HFI_PARSER_H
#define HFI_PARSER_H

#include <stddef.h>

struct redisReader;

/* The parser refuses an array that cannot be complete within `reply_most` bytes before it allocates memory for it. The
 * caller frees the parser with redisReaderFree. NULL: no memory. */
struct redisReader *hfi_parser_create(size_t reply_most);

#endif
