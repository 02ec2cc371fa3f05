/* SPDX-License-Identifier: MIT */
/* proxy.h - a proxy between clients and a server that does to their connections all that a network can do. It also
 * parses requests and replies, so that a test can pick one out. One thread runs it; the test controls it by calls. */
#ifndef HFT_PROXY_H
#define HFT_PROXY_H

#include "tests/support/server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hft_proxy;

enum hft_class {
    HFT_COMMANDS,
    HFT_SUBSCRIBER
}; /* a connection is a subscriber from its first SUBSCRIBE on */

/* What happens to all bytes of one direction. Zeroes: nothing. */
struct hft_way {
    int64_t delay_ns, jitter_ns; /* delay of delay_ns and a random part up to jitter_ns; order is kept */
    int drip_bytes;              /* > 0: no more than so many at once,                               */
    int64_t drip_ns;             /* ... and so long between                                          */
    int64_t byte_ns;             /* all connections share one line, on which a byte takes so long    */
    bool hole;                   /* read and thrown away; a connection that has lost a byte is never mended */
    bool stall;                  /* not read at all: the sender's socket fills                       */
    int64_t cut_after;           /* > 0: the connection ends after this many delivered bytes */
    bool cut_by_reset;           /* ... by RST instead of FIN (TCP only)                             */
    int spoil_one_in;            /* > 0: one of this many messages has a wrong byte, at its head or anywhere */
};

struct hft_network {
    struct hft_way to_server[2], to_client[2]; /* by class */
    bool accept_nobody;                        /* connects succeed and hear nothing */
};

enum hft_sentence {
    HFT_PASS,
    HFT_SILENCE,    /* the request is lost, and the connection is silent from now on, both ways */
    HFT_ANSWER,     /* the server never sees it; the client gets `text` as the reply, in its turn */
    HFT_CUT_BEFORE, /* the connection ends, the server never sees it                             */
    HFT_CUT_AFTER,  /* the server executes it; the client sees the end of the connection */
    HFT_LATE_REPLY  /* the reply, and so all behind it, comes delay_ns later                     */
};

struct hft_request {
    int words;
    const char *word[4]; /* the first ones; not ended by NUL */
    size_t size[4];
    uint64_t connection;
    enum hft_class class;
};

struct hft_judgement {
    enum hft_sentence sentence;
    const char *text; /* HFT_ANSWER: a whole reply, "-OOM command not allowed\r\n" */
    int64_t delay_ns;
};

/* Called in the proxy's thread for each request; the judgement is HFT_PASS before. */
typedef void hft_judge(const struct hft_request *request, struct hft_judgement *judgement, void *arg);

bool hft_request_is(const struct hft_request *request, const char *command,
                    const char *first_argument); /* NULL: any */

struct hft_proxy *hft_proxy_start(const struct hft_server *server); /* a unix socket beside the server's */
struct hft_proxy *hft_proxy_start_tcp(const struct hft_server *server); /* a port of 127.0.0.1 */
const char *hft_proxy_url(const struct hft_proxy *proxy);
void hft_proxy_stop(struct hft_proxy *proxy); /* NULL is a no-op */

long hft_proxy_spoiled(struct hft_proxy *proxy); /* messages so far */
/* The times at which connections were accepted since the last call, the first `most` of them in order. Returns their
 * number. */
int hft_proxy_dials(struct hft_proxy *proxy, int64_t *at_ns, int most);

/* All of these have taken effect when they return. */
void hft_proxy_network(struct hft_proxy *proxy, const struct hft_network *network); /* NULL: a good one */
void hft_proxy_judge(struct hft_proxy *proxy, hft_judge *judge, void *arg);         /* NULL: nobody */
void hft_proxy_cut(struct hft_proxy *proxy, bool reset);                            /* every connection */
void hft_proxy_half_close(struct hft_proxy *proxy); /* every client hears the end, and may still talk */
/* The connections that exist now, of these classes, stay silent for ever; new ones work. Returns how many those are. */
#define HFT_EVERY_CLASS (1u << HFT_COMMANDS | 1u << HFT_SUBSCRIBER)
int hft_proxy_freeze_present(struct hft_proxy *proxy, unsigned classes);

#endif
