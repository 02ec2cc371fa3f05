/* SPDX-License-Identifier: MIT */
/* ask_origin.h - how a server of the demo gets a page from the slow origin. */
#ifndef ASK_ORIGIN_H
#define ASK_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

/* The page, which the caller frees; NULL and errno if there is none. Gives up after 10 s of silence. The request
 * names the process and its fence (0: none). */
char *ask_origin(const char *host, const char *port, const char *path, int64_t fence, size_t *size);

#endif
