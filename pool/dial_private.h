/* SPDX-License-Identifier: MIT */
/* dial_private.h - what dial.c (the steps, the handshake's I/O) and dial_connect.c (the sockets) share of a dial. */
#ifndef HFI_DIAL_PRIVATE_H
#define HFI_DIAL_PRIVATE_H

#include "base/check.h"
#include "pool/dial.h"
#include "pool/handshake.h"
#include "pool/race.h"
#include "pool/topology.h"

enum hfi_step { HFI_STEP_FIND, HFI_STEP_CONNECT, HFI_STEP_START, HFI_STEP_TALK };

struct hfi_dial {
    struct hfi_peer *peer;
    struct hfi_deployment *deployment; /* peer's */
    enum hfi_step step;
    int64_t until_ns, again_ns;
    bool bears_scripts; /* until_ns has moved for the scripts */
    short events;

    struct hfi_addresses addresses;
    struct hfi_race race;
    int racing[HFI_ADDRESSES_MOST]; /* connecting sockets, by address; -1: none */
    int any;                        /* an epoll of the sockets if there are several addresses; else -1 */
    uint32_t number;                /* of the descriptor that is polled: a socket, or `any` */
    int winner;                     /* the index of the address of `connection` */

    struct hfi_connection connection;
    struct redisReader *reader;
    size_t unparsed;
    struct hfi_handshake handshake;
    hf_error error;
};

/* Every step but the first begins here: they come in the order of enum hfi_step. */
static inline void hfi_dial_enter(struct hfi_dial *dial, enum hfi_step step)
{
    HFI_CHECK(step == dial->step + 1);
    dial->step = step;
}

/* dial.c */
/* Sets dial->error: what we wanted to do (`what`), and why the system did not let us. Returns its status. */
hf_status hfi_dial_fail_os(struct hfi_dial *dial, int os_errno, const char *what);

/* dial_connect.c */
/* Takes the step CONNECT: looks at the sockets, and begins with the addresses that are due. The first socket that
 * connects wins: it becomes dial->connection, and the next step is START. False: no address is left, dial->error is
 * set. */
bool hfi_dial_connect(struct hfi_dial *dial, int64_t now_ns);
/* Closes the sockets that have not won: all of them if there is no winner. */
void hfi_dial_end_race(struct hfi_dial *dial);

#endif
