/* SPDX-License-Identifier: MIT */
/* pool_kit.h - a pool on a test's own server, a record of the events that it reported, and commands whose outcome a
 * test waits for. For tests that link hf_open. */
#ifndef HFT_POOL_KIT_H
#define HFT_POOL_KIT_H

#include "pool/pool.h"
#include "tests/support/server.h"

#include <pthread.h>
#include <stdatomic.h>

struct hft_owner { /* what the pool's ops were told */
    _Atomic(int) ups, kicks, greetings;
    _Atomic(bool) refuse_greeting;
    _Atomic(bool) keeps_listener; /* whom it kicks: until this is false again */
    void (*hears)(struct hft_owner *owner); /* not NULL: called for a message instead of waking `changed` */
    _Atomic(int64_t) ahead_ns; /* the pool's clock is so much ahead of the real one */
    struct hfi_clock clock;

    pthread_mutex_t mutex;
    struct hfi_park changed; /* woken by everything below */
    int subscribed, heard;
    char channel[64], message[64]; /* the last one heard */
};

struct hft_pool {
    struct hft_owner owner;
    struct hfi_pool_settings settings;
    struct hfi_pool *pool;
};

struct hft_call {
    pthread_mutex_t mutex;
    struct hfi_park park;
    int dones;
    enum hfi_outcome outcome;
    redisReply *reply;
};

/* Settings for the server (command_ms 1000, one lane, one subscriber): the test may change them before it opens the
 * pool. */
void hft_pool_init(struct hft_pool *kit, const struct hft_server *server);
hf_status hft_pool_open(struct hft_pool *kit, const struct hfi_script *const *scripts, hf_error *error);
void hft_pool_close(struct hft_pool *kit); /* within 2 s, and frees */

/* The server has acknowledged the channel, and its connection is not lost. */
bool hft_is_subscribed(const struct hfi_pool *pool, const char *channel, size_t size);

int64_t hft_now(void);
int64_t hft_in_ms(int64_t ms);
/* Waits until the condition holds; the test program ends with a message after 20 s. */
#define HFT_UNTIL(condition)                                                                                 \
    do {                                                                                                     \
        int64_t until_ns_ = hft_in_ms(20000);                                                                \
        while (!(condition))                                                                                 \
            hft_breathe(until_ns_, #condition);                                                              \
    } while (0)
void hft_breathe(int64_t until_ns, const char *what);

/* "SET %s 1" without formats: words divided by single blanks. */
struct hfi_command *hft_command(const char *words, int64_t until_ns);
void hft_list(struct hfi_lane *lane, struct hft_call *call, struct hfi_command *command); /* does not flush */
/* Lists and flushes the command; hft_wait returns its outcome. The call must stay in memory until then. */
void hft_post(struct hfi_lane *lane, struct hft_call *call, struct hfi_command *command);
void hft_wait(struct hfi_lane *lane, struct hft_call *call); /* reads on the lane */
void hft_sleep(struct hft_call *call);                       /* leaves the reading to others */
bool hft_is_over(struct hft_call *call);
/* post and wait. The reply is the call's until hft_call_done. */
void hft_ask(struct hfi_lane *lane, struct hft_call *call, const char *words);
void hft_call_done(struct hft_call *call);

#endif
