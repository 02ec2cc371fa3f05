/* SPDX-License-Identifier: MIT */
/* reset.h - restores a returned connection to its initial state, or finds that this is not possible. */
#ifndef HFI_RESET_H
#define HFI_RESET_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_connection;
struct hfi_peer;

/* Each call has one deadline and raises no SIGPIPE. The socket may be a blocking one: its I/O here does not block. */
bool hfi_reset_ping(struct hfi_peer *peer, struct hfi_connection *connection, int64_t until_ns);
/* RESET (before Redis 6.2: DISCARD, UNWATCH, ...), then the handshake of a new connection. False: close it. */
bool hfi_reset(struct hfi_peer *peer, struct hfi_connection *connection, int64_t until_ns);
/* No unread bytes have come in, and the server has not hung up; else a byte of it may be gone. */
bool hfi_reset_is_quiet(struct hfi_connection *connection);

#endif
