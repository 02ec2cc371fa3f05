/* SPDX-License-Identifier: MIT */
/* fetch.h - one call of hf_fetch, or a job that a loader thread runs for some, shared by its parts: fetch_read.c reads,
 * fetch.c decides, fetch_acquire.c gets the lease or the value of another caller's load, load.c runs the loader, fetch_fill.c
 * stores, fetch_alone.c works without the server, fetch_aside.c hands loads to loader threads and runs them there. */
#ifndef HFI_FETCH_H
#define HFI_FETCH_H

#include "core/fetch/loading.h"
#include "core/fetch/near.h"
#include "core/policy/freshness.h"
#include "core/lock/acquirer.h"
#include "core/lock/lock.h"

struct hfi_aside_job;
struct hfi_filler;

struct hfi_fetch { /* on the stack of the caller, or of the loader thread */
    hf_client *client;
    const struct hfi_name *key;
    struct hfi_lane *lane;   /* the key's */
    struct hfi_lane *reads;  /* by which it is read: that one, or another (read_lane.h) */
    struct hfi_lock *lock;   /* a reference; NULL: not needed so far */
    const hf_fetch_options *options;
    int64_t since_ns;        /* when the call began */
    int64_t began_ns;        /* when this attempt began */
    bool again;              /* an earlier attempt got no answer */
    bool answers;            /* the server answered with an error, which it would repeat */
    int cuts;                /* attempts during which the connection ended for another reason than silence */
    int64_t alone_until_ns;  /* without the server: how long to wait for another thread's load, or a turn */
    struct hfi_seen seen;
    struct hfi_body *found;  /* what Redis has, or memory: a reference; NULL: nothing */
    bool is_near;            /* it is from memory */
    struct hfi_near_reading near; /* of the last read; epoch 0: what it brings may not be near */
    bool refused;            /* the server answered UNAVAILABLE: it is there, but refuses writes */
    int64_t left_ms;         /* until the key of `found` ends; -1: never, -2: not known */
    int64_t end_from_ns, end_till_ns; /* it ends between these, on our clock, but for a round trip; 0: not known */
    bool is_read;            /* the next attempt need not read: its caller has */
    int64_t came_ns;         /* a job's: what it gives was seen by then: at the server, or in an answer */
    bool is_late;            /* what was loaded was thrown away: the lease was lost, or the value forgotten meanwhile */
    bool went_aside;         /* a loader thread's job was waited for: what it said is the answer */
    struct hfi_aside_job *job; /* NULL: a caller's own call */
    bool is_loading;         /* the loader runs, ... */
    hf_lease *lease;         /* ... under this lease; NULL: without one */
};

/* fetch_read.c. Fills f->found, NULL if there is nothing, and f->left_ms; or the errors of hf_fetch. */
hf_status hfi_fetch_read(struct hfi_fetch *f, hf_error *error);
/* The same for one of several that are read at once: its command, NULL if there is no memory; and its reply, which is freed.
 * BUSY: that was an error, read it by itself. *again: the bytes have changed, and their end is not known: look, and read it once more. */
struct hfi_command *hfi_fetch_read_begin(struct hfi_fetch *f);
hf_status hfi_fetch_read_end(struct hfi_fetch *f, struct redisReply *reply, uint32_t connection, bool *again, hf_error *error);
/* Remembers *body as the value last seen; left_ms as above, load_ms 0: not known. If the remembered body has the same
 * bytes, it replaces *body (local.h). */
void hfi_fetch_remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms, bool stored);
/* Remembers that there is none, near if f->near says that it may be; left_ms: until that is asked again. */
void hfi_fetch_remember_absent(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms);

/* fetch.c. Copies, completes and checks a call's options. */
hf_status hfi_fetch_take_options(hf_client *client, const hf_fetch_options *given, bool many, hf_fetch_options *options, hf_error *error);
/* Counts the source and makes the caller's value: HF_OK or NOMEM. */
hf_status hfi_fetch_answer(struct hfi_fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
                           hf_value **value, hf_error *error);
/* What is to be done with the value found; and that, where nobody has to be asked: it is answered, or a loader thread's. */
enum hfi_freshness hfi_fetch_judge(const struct hfi_fetch *f);
hf_status hfi_fetch_give(struct hfi_fetch *f, enum hfi_freshness freshness, hf_value **value, hf_error *error);
/* In memory, and so found. False: nothing, or not to be given out. */
bool hfi_fetch_look_near(struct hfi_fetch *f);
void hfi_fetch_done(struct hfi_fetch *f); /* drops what it holds */
/* Reads and decides, again and again while the server might answer yet. */
hf_status hfi_fetch_attempts(struct hfi_fetch *f, hf_value **value, hf_error *error);
/* Loads once more what was found, if the lease is to be had at once. HF_OK and *value, a newer one; BUSY: somebody else
 * loads; or an error. */
hf_status hfi_fetch_reload(struct hfi_fetch *f, hf_value **value, hf_error *error);

/* load.c. Runs the loader once; lease NULL: without a lease. Returns as hfi_loading_run does; the ttls are jittered.
 * The caller then calls hfi_loading_done. */
hf_status hfi_fetch_load(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading);
/* The same around a run for several: what the loader is given; what its run has cost, and whether it worked. */
void hfi_fetch_load_begin(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading);
void hfi_fetch_load_end(struct hfi_fetch *f, struct hf_loading *loading, hf_status status);
/* Remembers what was loaded, unless its ttl forbids to keep it. left_ms -1: it was not stored. */
void hfi_fetch_remember_load(struct hfi_fetch *f, struct hf_loading *loading, int64_t left_ms);
/* The loader has ended its thread: what hfi_fetch_load's caller would have done, who is gone. */
void hfi_fetch_abandon(struct hfi_fetch *f, const hf_error *failure);

/* fetch_aside.c. Has the value found loaded once more by a loader thread, and waits at most soft_ms (0: not) for it. HF_OK
 * and *value; else the value found is the answer. */
hf_status hfi_fetch_refresh_aside(struct hfi_fetch *f, int64_t soft_ms, hf_value **value, hf_error *error);
/* Has the value loaded by a loader thread, and waits for it until wait_ms after the call began. */
hf_status hfi_fetch_load_aside(struct hfi_fetch *f, hf_value **value, hf_error *error);
/* Why there is no value, for BUSY, TIMEOUT and CLOSED. Returns status. */
hf_status hfi_fetch_explain(const struct hfi_fetch *f, hf_status status, hf_error *error);
/* Runs a job: an hfi_aside_run (aside.h). */
void hfi_fetch_run(hf_client *client, struct hfi_aside_job *job);

/* fetch_acquire.c. Gets f->lock, and its `shared` for the waiters. Only a fetch that finds nothing fresh needs them. */
hf_status hfi_fetch_need_lock(struct hfi_fetch *f, hf_error *error);
void      hfi_fetch_drop_lock(struct hfi_fetch *f);
/* Called before and after a wait for another caller's load. LIMIT: too many calls wait. */
hf_status hfi_fetch_begin_wait(struct hfi_fetch *f, hf_error *error);
void hfi_fetch_end_wait(struct hfi_fetch *f);
/* Waits for the lease or a value; once: does not wait. HF_OK with *lease or *value, else neither. */
hf_status hfi_fetch_acquire(struct hfi_fetch *f, bool once, hf_lease **lease, hf_value **value, hf_error *error);
/* A try, as one of several: begun without a flush; and its end, which is due whatever has happened meanwhile. */
struct hfi_fetch_asking {
    hf_lock_options options;
    struct hfi_acquirer acquirer;
    int64_t until_ns;
};
void hfi_fetch_try_begin(struct hfi_fetch *f, struct hfi_fetch_asking *asking);
hf_status hfi_fetch_try_end(struct hfi_fetch *f, struct hfi_fetch_asking *asking, hf_lease **lease, hf_value **value, hf_error *error);

/* fetch_fill.c. Loads and stores the value under the lease, and releases it. */
hf_status hfi_fetch_fill(struct hfi_fetch *f, hf_lease *lease, hf_value **value, hf_error *error);
/* What was loaded, as one of several: begun without a flush (NULL: it is not stored); and its end, which ends the loading too. */
struct hfi_filler *hfi_fetch_fill_begin(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading);
hf_status hfi_fetch_fill_end(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading, struct hfi_filler *filler,
                             hf_value **value, hf_error *error);
/* The load has failed: so it has for all waiters of this process, while another one, the next in the queue, tries again.
 * Releases the lease. */
void hfi_fetch_fail(struct hfi_fetch *f, hf_lease *lease, const hf_error *failure);

/* fetch_alone.c. For a server that is away, or refuses (f->refused); error says why on entry. */
hf_status hfi_fetch_alone(struct hfi_fetch *f, hf_value **value, hf_error *error);

#endif
