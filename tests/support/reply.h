/* SPDX-License-Identifier: MIT */
/* reply.h - a reply from the bytes that a server would send. */
#ifndef HFT_REPLY_H
#define HFT_REPLY_H

#include <hiredis/hiredis.h>

redisReply *hft_reply(const char *bytes); /* one, whole; the caller frees it */

#endif
