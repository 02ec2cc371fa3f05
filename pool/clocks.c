/* SPDX-License-Identifier: MIT */
/* clocks.c - see clocks.h. */
#include "pool/clocks.h"
#include "pool/dial.h"
#include "pool/topology_one.h"

int64_t hfi_clocks_apart_ns(const struct hfi_clock_look *looks, int count, int *ahead, int *behind)
{
    int64_t most_ns = 0;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int64_t apart_ns = looks[i].ahead_ns - looks[j].ahead_ns - (looks[i].rtt_ns + looks[j].rtt_ns) / 2;
            if (apart_ns <= most_ns)
                continue;
            most_ns = apart_ns;
            *ahead = i;
            *behind = j;
        }
    }
    return most_ns;
}

void hfi_clocks_end(struct hfi_clocks *clocks)
{
    hfi_dial_end(&clocks->dial);
    if (clocks->topology == NULL)
        return;
    hfi_peer_done(&clocks->peer);
    clocks->peer = (struct hfi_peer){0};
    hfi_topology_free(clocks->topology);
    clocks->topology = NULL;
}

static void begin(struct hfi_clocks *clocks, const struct hfi_topology_ops *ops, int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &clocks->deployment->settings;
    struct hfi_named_host *at = &clocks->looks[clocks->next].at;
    clocks->endpoint = (struct hfi_endpoint){.scheme = HFI_TCP,
                                             .tls = settings->endpoint.tls,
                                             .user = settings->endpoint.user,
                                             .password = settings->endpoint.password,
                                             .host = at->host,
                                             .port = at->port};
    if (hfi_topology_one_new(&clocks->endpoint, clocks->deployment->clock, ops, &clocks->topology, NULL) != HF_OK)
        return;
    hfi_peer_init(&clocks->peer, clocks->deployment, &clocks->endpoint, clocks->topology);
    clocks->dial = hfi_dial_begin(&clocks->peer, HFI_DIAL_CLOCK, -1, hfi_after_ms(now_ns, settings->connect_ms));
}

bool hfi_clocks_step(struct hfi_clocks *clocks, const struct hfi_topology_ops *ops, int64_t now_ns, struct hfi_poll_set *set)
{
    for (; clocks->next < clocks->count; clocks->next++) {
        if (clocks->dial == NULL)
            begin(clocks, ops, now_ns);
        enum hfi_dial_state state = clocks->dial != NULL ? hfi_dial_step(clocks->dial, now_ns) : HFI_DIAL_FAILED;
        if (state == HFI_DIAL_GOING) {
            hfi_poll_set_add(set, hfi_dial_polled(clocks->dial), NULL, NULL);
            hfi_poll_set_again(set, hfi_dial_again_ns(clocks->dial));
            return false;
        }
        if (state == HFI_DIAL_UP) {
            struct hfi_clock_look *look = &clocks->looks[clocks->answered++];
            look->at = clocks->looks[clocks->next].at;
            hfi_dial_clock(clocks->dial, &look->ahead_ns, &look->rtt_ns);
        }
        hfi_clocks_end(clocks);
    }
    return true;
}
