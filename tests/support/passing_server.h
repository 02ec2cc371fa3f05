/* SPDX-License-Identifier: MIT */
/* passing_server.h - a question to a server that may be ending at this moment. */
#ifndef HFT_PASSING_SERVER_H
#define HFT_PASSING_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* Asks the server at the socket `path`; a number, a status or a string as text in `out`. False: there is no answer. */
bool hft_passing_ask(const char *path, char *out, size_t room, const char *command);

#endif
