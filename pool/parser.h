/* SPDX-License-Identifier: MIT */
/* parser.h - hiredis' parser of replies, with a limit to what a server may announce. */
#ifndef HFI_PARSER_H
#define HFI_PARSER_H

#include <stddef.h>

struct redisReader;

/* Refuses an array that could not be complete within `reply_most` bytes, before memory is taken for it. NULL: no memory.
 * To be freed by redisReaderFree. */
struct redisReader *hfi_parser_create(size_t reply_most);

#endif
