/* SPDX-License-Identifier: MIT */
/* takers.h - threads that acquire a lock and record the result; a client in a process of its own. For tests of the
 * public API: only the main thread asserts, these record. */
#ifndef HFT_TAKERS_H
#define HFT_TAKERS_H

#include "base/tsan.h"
#include "tests/support/server.h"

#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdatomic.h>

/* ThreadSanitizer holds a signal back from a thread that sleeps in a system call which it does not know, as a futex: a test
 * that waits for the handler would wait for ever. */
#ifdef HFI_TSAN
#define HFT_NEEDS_PROMPT_SIGNALS() skip()
#else
#define HFT_NEEDS_PROMPT_SIGNALS() ((void)0)
#endif

int64_t hft_boottime_ms(void);
/* Waits until the condition holds; the test program ends with a message after 20 s. */
#define HFT_UNTIL_TRUE(condition)                                                                              \
    do {                                                                                                       \
        int64_t until_ms_ = hft_boottime_ms() + 20000;                                                         \
        while (!(condition))                                                                                   \
            hft_pause(until_ms_, #condition);                                                                  \
    } while (0)
void hft_pause(int64_t until_ms, const char *what);

/* Checks that the condition holds until this client has had that many more renewals: a lease lives by its renewals,
 * not by the time that passes. */
#define HFT_WHILE_RENEWED(client, times, condition)                                                            \
    do {                                                                                                       \
        uint64_t enough_ = hft_renewals(client) + (times);                                                     \
        int64_t until_ms_ = hft_boottime_ms() + 20000;                                                         \
        while (hft_renewals(client) < enough_) {                                                               \
            assert_true(condition);                                                                            \
            hft_pause(until_ms_, "renewals");                                                                  \
        }                                                                                                      \
    } while (0)
uint64_t hft_renewals(const hf_client *client);
uint64_t hft_failed_renewals(const hf_client *client);
/* Until each of the leases was renewed so often, or one of them is over. */
void hft_await_renewals(int times, hf_lease *const *leases, int count);
/* After an outage: until each lease is renewed, and its own connection answers again, or one is over. The first connection that is
 * back renews all. */
void hft_await_return(hf_lease *const *leases, int count);
bool hft_are_valid(hf_lease *const *leases, int count);
/* Until the lease is over. Returns when it was last seen valid, by hft_boottime_ms; 0: it never was. */
int64_t hft_await_end(const hf_lease *lease);
/* The commands that it has sent, handshakes apart. */
uint64_t hft_commands(const hf_client *client);

/* Opens, or ends the test program with the error's words. */
hf_client *hft_client(const struct hft_server *server, const hf_client_options *options);
hf_client *hft_client_at(const char *url, const hf_client_options *options);
/* Closes the client. True: all was given back; or the server has been silent, and the client may not know. */
bool hft_closes(const struct hft_server *server, hf_client *client, hf_error *error);

/* Acquires the lock and releases it. */
hf_status hft_lock_once(hf_client *client, const char *name, int64_t wait_ms, hf_error *error);

struct hft_taker {
    pthread_t thread;
    hf_client *client;
    const char *name;
    hf_lock_options options;
    int limit, permits; /* of a semaphore; 0: it takes a lock */
    _Atomic(bool) done;
    hf_lease *lease;
    hf_status status;
    hf_error error;
    int64_t began_ms, got_ms;
};

/* `options` are copied. The taker stays where it is until it is joined. */
void hft_take(struct hft_taker *taker, hf_client *client, const char *name, const hf_lock_options *options);
void hft_take_permits(struct hft_taker *taker, hf_client *client, const char *name, int limit, int permits,
                      const hf_lock_options *options);
hf_status hft_taken(struct hft_taker *taker); /* joins; the lease is the caller's */
bool hft_dump_says(const hf_client *client, const char *words); /* hf_client_dump does */
/* The number of this client's threads that wait for the name (a fetched key or a lock), by hf_client_dump. */
int hft_waiting_here(const hf_client *client, const char *name);

/* The value of the lock's key, which has no NUL byte inside; "" if it is missing. */
void    hft_held_by(struct hft_server *server, const char *name, char *out, size_t room);
int64_t hft_queued(struct hft_server *server, const char *name); /* processes in the remote queue */
int64_t hft_lock_keys(struct hft_server *server);                /* all keys but the fence counter */
int64_t hft_lock_exists(struct hft_server *server, const char *name);

/* A child process that runs `run`, talks by two descriptors, and exits with the result. It is forked before this
 * process has threads, so that sanitizers can follow. */
struct hft_process {
    pid_t pid;
    int to, from;
};
void hft_process_start(struct hft_process *process, int (*run)(int from, int to, void *arg), void *arg);
void hft_process_tell(const struct hft_process *process, char word);
/* Returns the next byte of the child; 0 at its end. The test program ends after 20 s. */
char hft_process_read(const struct hft_process *process);
int  hft_process_end(struct hft_process *process); /* waits; its exit code, or 128 + signal */
void hft_process_kill(struct hft_process *process);

#endif
