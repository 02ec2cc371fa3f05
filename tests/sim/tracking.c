/* SPDX-License-Identifier: MIT */
/* tracking.c - CLIENT TRACKING of the virtual server, in RESP2, by OPTIN and REDIRECT: who is told of a key's next change. */
#include "pool/owner.h"
#include "tests/sim/server_inside.h"

#include <stdlib.h>
#include <string.h>

static bool is_word(const struct sim_words *words, int at, const char *word)
{
    return at < words->count && strcmp(words->text[at], word) == 0;
}

/* Ids are of one run: the server after a restart, or a failover, gives them anew. */
static struct sim_wire *wire_of(const struct sim_wire *asks, int64_t id)
{
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->id == id && wire->server == asks->server && wire->epoch == asks->epoch && wire->server_open)
            return wire;
    }
    return NULL;
}

static void track(struct sim_wire *wire, const struct sim_words *words, struct hfi_buffer *reply)
{
    int64_t id = 0;
    for (int i = 3; i + 1 < words->count; i++)
        if (is_word(words, i, "REDIRECT"))
            id = atoll(words->text[i + 1]);
    if (is_word(words, 2, "OFF")) {
        wire->tracker = 0;
        wire->caching = false;
    } else if (wire_of(wire, id) == NULL) {
        sim_reply_error(reply, "ERR The client ID you want redirect to does not exist");
        return;
    } else {
        wire->tracker = id;
    }
    sim_reply_line(reply, '+', "OK");
}

void sim_track_client(struct sim_wire *wire, const struct sim_words *words, struct hfi_buffer *reply)
{
    if (is_word(words, 1, "TRACKING")) {
        track(wire, words, reply);
    } else if (is_word(words, 1, "GETREDIR")) {
        sim_reply_number(reply, ':', wire->tracker != 0 ? wire->tracker : -1);
    } else if (is_word(words, 1, "ID")) {
        sim_reply_number(reply, ':', wire->id);
    } else if (wire->tracker == 0) {
        sim_reply_error(reply, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN");
    } else {
        wire->caching = true;
        sim_reply_line(reply, '+', "OK");
    }
}

void sim_track_read(struct sim_wire *wire, const struct sim_words *words)
{
    bool reads = sim_is(words, "GET") || sim_is(words, "PTTL") || sim_is(words, "SISMEMBER") || sim_is(words, "SMISMEMBER");
    if (wire->caching && reads && *sim_name_find(&wire->tracked, words->text[1]) == NULL)
        sim_name_add(&wire->tracked, words->text[1]);
    if (!wire->in_multi && !sim_is(words, "CLIENT"))
        wire->caching = false;
}

/* To a tracker that is there and subscribed. A primary that is one no more has not heard of it. */
static void tell(const struct sim_wire *wire, const char *key)
{
    struct sim_wire *tracker = wire->tracker != 0 && !wire->demoted ? wire_of(wire, wire->tracker) : NULL;
    if (tracker == NULL || !sim_server_listens_to(tracker, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)))
        return;
    sim_server->messages++;
    sim_server_send_message(tracker, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS), key, key != NULL ? strlen(key) : 0);
}

/* Once: its next change is told when it has been read again. */
void sim_track_changed(const char *key)
{
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        struct sim_wire_channel **tracked = sim_name_find(&wire->tracked, key);
        if (wire->server != sim_server || *tracked == NULL)
            continue;
        sim_name_drop(tracked);
        tell(wire, key);
    }
}

void sim_track_flushed(void)
{
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->server != sim_server || !wire->server_open)
            continue;
        while (wire->tracked != NULL)
            sim_name_drop(&wire->tracked);
        tell(wire, NULL);
    }
}
