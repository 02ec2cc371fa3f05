/* SPDX-License-Identifier: MIT */
/* dial.h - establishes a connection: connect and handshake, one step at a time. No step blocks, so one thread can dial
 * many connections at once. */
#ifndef HFI_DIAL_H
#define HFI_DIAL_H

#include "pool/handshake.h"
#include "pool/listener.h"
#include "pool/transport.h"

enum hfi_dial_state { HFI_DIAL_GOING, HFI_DIAL_UP, HFI_DIAL_FAILED };

struct hfi_dial;
struct hfi_peer;

/* The dial fails if it is not UP by until_ns; any but a borrower's has connect_ms more if scripts travel then, its own or another
 * lane's. NULL: no memory. */
struct hfi_dial *hfi_dial_begin(struct hfi_peer *peer, enum hfi_dial_purpose purpose, int lane,
                                int64_t until_ns);
/* Does what can be done now. While it returns GOING, call it again when what it polls is ready, and at hfi_dial_again_ns at
 * the latest. */
enum hfi_dial_state hfi_dial_step(struct hfi_dial *dial, int64_t now_ns);
struct hfi_polled hfi_dial_polled(const struct hfi_dial *dial); /* of NULL too: nothing */
int64_t hfi_dial_again_ns(const struct hfi_dial *dial);
/* UP: the connection, owned by the caller from now on. */
struct hfi_connection hfi_dial_take(struct hfi_dial *dial);
const struct hfi_server *hfi_dial_server(const struct hfi_dial *dial); /* UP */
int64_t hfi_dial_client_id(const struct hfi_dial *dial);               /* UP, of a tracker; -1: not told */
void hfi_dial_clock(const struct hfi_dial *dial, int64_t *ahead_ns, int64_t *rtt_ns); /* UP, of a clock */
const hf_error *hfi_dial_error(const struct hfi_dial *dial);           /* FAILED */
/* Closes what was not taken, frees it, and before that sets *dial to NULL: a fork child closes what that points to. */
void hfi_dial_end(struct hfi_dial **dial);
void hfi_dial_forked(const struct hfi_dial *dial); /* in a fork child: closes, frees nothing; NULL is a no-op */

/* The whole dial, for a caller that may block. *connection: a borrower's, with a CLOEXEC socket. HF_OK, UNAVAILABLE,
 * DENIED, PROTOCOL, INVALID, NOMEM. */
hf_status hfi_dial_now(struct hfi_peer *peer, int64_t until_ns, struct hfi_connection *connection, hf_error *error);

#endif
