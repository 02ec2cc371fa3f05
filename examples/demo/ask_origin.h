/* SPDX-License-Identifier: MIT */
/* ask_origin.h - how a server of the demo gets a page from the slow origin. */
#ifndef ASK_ORIGIN_H
#define ASK_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

/* The page, for the caller to free; NULL and errno if there is none. Gives up after 10 s of silence.
 * Tells the origin who asks and under which fence (0: none). */
char *ask_origin(const char *host, const char *port, const char *path, int64_t fence, size_t *size);

#endif
