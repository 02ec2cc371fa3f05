/* SPDX-License-Identifier: MIT */
/* wire.h - reads all commands of the server (MONITOR) and counts them. One thread. */
#ifndef HFT_WIRE_H
#define HFT_WIRE_H

#include "tests/support/server.h"

#include <stdint.h>

struct hft_wire {
    redisContext *context;
    int64_t commands; /* by clients; what scripts run is not counted */
    int64_t acquires; /* SET hf:{torture:0} by clients */
    int64_t again;    /* acquires while an earlier one's key still existed: more than one was outstanding */
    int held;
};

void hft_wire_open(struct hft_wire *wire, struct hft_server *server);
void hft_wire_read(struct hft_wire *wire); /* what has arrived; never waits */
void hft_wire_close(struct hft_wire *wire);

#endif
