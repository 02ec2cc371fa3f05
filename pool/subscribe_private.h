/* SPDX-License-Identifier: MIT */
/*
 * subscribe_private.h - what subscribe.c (the connections) and subscribe_wait.c (for any thread) share of
 * the subscribers. There is one role: its owner may touch the connections and receive. The listener dials, hangs up and
 * enforces deadlines with it; a waiting thread only receives, and leaves to the listener what it finds wrong.
 */
#ifndef HFI_SUBSCRIBE_PRIVATE_H
#define HFI_SUBSCRIBE_PRIVATE_H

#include "base/buffer.h"
#include "pool/backoff.h"
#include "pool/peer.h"
#include "pool/transport.h"

struct hfi_channels;
struct hfi_dial;
struct hfi_listener;
struct redisReader;

struct hfi_subscriber {
    struct hfi_subscribers *all;
    int index;
    struct hfi_dial *dial;
    struct hfi_backoff backoff;
    int64_t dial_due_ns;
    struct hfi_connection connection;
    struct redisReader *parser;
    size_t unparsed;
    struct hfi_buffer out, asks;
    int64_t received_ns;  /* when the last byte came */
    int64_t expect_ns; /* a byte must come by then; HFI_NEVER: no reply is owed */
    bool failed;          /* the last dial failed: a further failure is not logged */
    bool served;        /* a byte has come */
    bool refused;       /* a subscription: a further one on this connection is not logged */
    const char *wrong;  /* why the connection is useless, as a waiting thread found: the listener hangs up */
    unsigned primaries; /* the pool's count when it was dialled */
    char run_id[48];
    _Atomic(int64_t) client_id; /* the tracker's: its id at the server; 0: not connected; -1: the server does not tell it */
};

struct hfi_subscribers {
    struct hfi_peer *peer;
    struct hfi_deployment *deployment; /* peer's */
    struct hfi_listener *listener;
    struct hfi_channels *channels;
    int count; /* with the last one, the tracker, which is dialled where HFI_INVALIDATIONS is wanted */
    _Atomic(bool) reading;       /* the role: its owner may touch what is below, and the list */
    _Atomic(bool) prove;         /* the tracker is to send a PING, whose answer proves what it has heard */
    _Atomic(bool) missed;        /* the listener wanted the role */
    _Atomic(bool) polled_inline; /* a waiting thread polls the sockets beside the listener */
    int wake_fd;                 /* wakes that thread */
    char in[HFI_RECV_WHOLE];
    struct hfi_subscriber list[];
};

/* subscribe_wait.c */
bool hfi_subscribers_take_role(struct hfi_subscribers *all); /* false: another thread has it */
void hfi_subscribers_give_role(struct hfi_subscribers *all); /* gives it back; kicks the listener if `missed` */

/* subscribe.c */
/* Needs the role. Receives what has come, and hands messages up. NULL: all is well; else what is wrong. */
const char *hfi_subscriber_receive(struct hfi_subscriber *one, int64_t now_ns);

#endif
