/* SPDX-License-Identifier: MIT */
/* call.h - a call of a script, or a command, that the virtual server and a real one are both asked, to compare. Time is an input to
 * both: a script takes the answer of TIME from its last argument. */
#ifndef HFT_SIM_CALL_H
#define HFT_SIM_CALL_H

#include "tests/sim/keyspace.h"

#include <hiredis/hiredis.h>

struct hfi_script;

struct sim_call {
    int count;
    char text[24][200];
};

char *sim_call_source(const struct hfi_script *script); /* the caller frees it */
void sim_call_add(struct sim_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* source NULL: it is a command. The caller frees the reply. */
redisReply *sim_call_virtual(struct sim_keyspace *keys, const struct sim_call *call, const char *source);
redisReply *sim_call_real(redisContext *real, const struct sim_call *call, const char *source);
void sim_call_show(const redisReply *reply);

#endif
