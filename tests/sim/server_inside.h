/* SPDX-License-Identifier: MIT */
/* server_inside.h - what server.c and tracking.c share of the virtual server's connections. */
#ifndef SIM_SERVER_INSIDE_H
#define SIM_SERVER_INSIDE_H

#include "tests/sim/server.h"

struct sim_wire_channel { /* a name on a list: of a channel, of a tracked key */
    struct sim_wire_channel *next;
    char name[];
};
void sim_name_add(struct sim_wire_channel **list, const char *name);
struct sim_wire_channel **sim_name_find(struct sim_wire_channel **list, const char *name);
void sim_name_drop(struct sim_wire_channel **at);

bool sim_server_listens_to(const struct sim_wire *wire, const char *channel, size_t size);
/* message NULL: nil. */
void sim_server_send_message(struct sim_wire *wire, const char *channel, size_t channel_size, const char *message, size_t size);

/* tracking.c: CLIENT, what is read after CACHING YES, and whose next change is told. */
void sim_track_client(struct sim_wire *wire, const struct sim_words *words, struct hfi_buffer *reply);
void sim_track_read(struct sim_wire *wire, const struct sim_words *words);
void sim_track_changed(const char *key);
void sim_track_flushed(void); /* all keys are gone */

#endif
