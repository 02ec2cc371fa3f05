/* SPDX-License-Identifier: MIT */
/* wire.h - the wire format: builds the commands of protocol.md from arguments, reads meanings from replies. No I/O. */
#ifndef HFI_WIRE_H
#define HFI_WIRE_H

#include "core/policy/entry.h"
#include "core/protocol/key.h"
#include "core/protocol/token.h"
#include "pool/command.h"

#include <holdfast/fetch.h>

struct redisReply;

/* The arguments of an acquire script that do not come from the entry's hfi_acquire_params. */
struct hfi_asking {
    bool    once; /* a try: no place in the queue */
    int64_t not_after_us, echo;
    int64_t enough_ms; /* with a fetch's keys: data that lives longer is the answer */
};

/* Each returns NULL if there is no memory. */
struct hfi_command *hfi_wire_native(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                    struct hfi_token token, int64_t ttl_ms, bool timed);
struct hfi_command *hfi_wire_acquire(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                     struct hfi_token token, const struct hfi_acquire_params *params,
                                     const struct hfi_asking *asking);
struct hfi_command *hfi_wire_release(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                     struct hfi_token token);
struct hfi_command *hfi_wire_shrink(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                    struct hfi_token token, int64_t keep); /* of a semaphore's permits */
struct hfi_command *hfi_wire_more(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                  struct hfi_token token, int64_t ttl_ms, int64_t size);
struct hfi_command *hfi_wire_downgrade(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                       struct hfi_token token, int64_t ttl_ms);
struct hfi_command *hfi_wire_floor(int64_t seen, int64_t estimate_us);
struct hfi_command *hfi_wire_quarantine(int64_t seen, int64_t estimate_us, const char *run_id);
/* Has the server tell the client of this id, once, when the key changes; answers also with what the key, or the member, is now. */
struct hfi_command *hfi_wire_track(const struct hfi_keys *keys, int64_t client_id);
struct hfi_command *hfi_wire_tracked(int64_t client_id, int argc, const char *const *argv, const size_t *sizes); /* by another question */
/* Has the connection's reads told to that tracker (0: it does that already); answers ROLE, and whom they are told. */
struct hfi_command *hfi_wire_near_question(int64_t tracker);
/* A value and its remaining life in ms, with the next change of it told; answers also whether it is, first of all. */
struct hfi_command *hfi_wire_near_read(const struct hfi_name *key);
struct hfi_command *hfi_wire_look(const struct hfi_keys *keys);
struct hfi_command *hfi_wire_waiters(const struct hfi_keys *keys, int most); /* the first ones, with tickets */
struct hfi_command *hfi_wire_break(const struct hfi_keys *keys, const char *random_hex, bool force);
struct hfi_command *hfi_wire_forget(const struct hfi_keys *keys);
/* Deletes the values of a tag, as many as one script should. tag_key: of hfi_tag_key. */
struct hfi_command *hfi_wire_forget_tag(const char *tag_key, size_t size);

struct hfi_tags { /* of one value */
    int   count;
    char *keys[HF_TAGS_MAX]; /* of hfi_tag_key */
};
enum hfi_filling { HFI_FILL_VALUE, HFI_FILL_SAME, HFI_FILL_ABSENT, HFI_FILL_NOTHING };
struct hfi_fill {
    enum hfi_filling what; /* SAME: what the server has goes on, if it is as `data` says (docs/protocol.md); else MISSING */
    int64_t     ttl_ms;
    const void *data;
    size_t      size;
    const struct hfi_tags *tags;
    int64_t     fence;     /* of the lease that it was loaded under */
};
struct hfi_command *hfi_wire_fill(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token,
                                  const struct hfi_fill *fill);

#define HFI_RENEW_MOST 32
struct hfi_renewal {
    const struct hfi_keys *keys;
    struct hfi_token token;
    int64_t ttl_ms;
    int32_t permits; /* all of one script are semaphores', or none is; one in a dialect is alone */
};
/* False: no memory. */
bool hfi_wire_add_token(struct hfi_command *command, const struct hfi_identity *identity, struct hfi_token token);
struct hfi_command *hfi_wire_renew(const struct hfi_identity *identity, const struct hfi_renewal *renewals, int count);
struct hfi_command *hfi_wire_renew_in_dialect(const struct hfi_identity *identity, const struct hfi_renewal *renewal);

/* Several names at once, all or none. The key of each lives for the longest ttl_ms. */
struct hfi_taking {
    const struct hfi_keys *keys;
    struct hfi_token token;
    int64_t ttl_ms;
};
struct hfi_command *hfi_wire_take_many(const struct hfi_identity *identity, const struct hfi_taking *names, int count,
                                       int64_t not_after_us);

/* Batched re-checks: several names in one script, with one stamp. The params are common to all of them, and all are of
 * one use. */
#define HFI_RECHECK_MOST 32
struct hfi_recheck_params {
    int64_t not_after_us, patience_ms, echo, claim_ttl_ms;
};
struct hfi_recheck {
    const struct hfi_keys *keys;
    struct hfi_token token;
};
struct hfi_command *hfi_wire_recheck(const struct hfi_identity *identity, const struct hfi_recheck_params *common,
                                     const struct hfi_recheck *rechecks, int count);

/* Reads a fetched value, its remaining life in ms, or both in a transaction. */
struct hfi_command *hfi_wire_get(const struct hfi_name *key);
struct hfi_command *hfi_wire_pttl(const struct hfi_name *key);
struct hfi_command *hfi_wire_get_pttl(const struct hfi_name *key);

/* A plain command of NUL-terminated words; the argument list ends with NULL. */
struct hfi_command *hfi_wire_words(const char *first, ...) __attribute__((sentinel));

/* A script's reply: an array that begins with a word, or with the time (renew, recheck, fence_floor), or a lone
 * word. */
struct hfi_script_reply {
    const char *word;   /* "GRANTED", ...; "" if the reply has another form */
    int64_t     now_us; /* server time; 0: none */
    size_t      count;
};
struct hfi_script_reply hfi_wire_script_reply(const struct redisReply *reply);
/* Which key is another program's: "lock", "queue", "wait", "fence", "data", "absent", "tag"; NULL: the reply is not
 * FOREIGN. */
const char *hfi_wire_foreign(const struct redisReply *reply);
/* Element `index` as a number; `otherwise` if it is missing or not a number. */
int64_t hfi_wire_number(const struct redisReply *reply, size_t index, int64_t otherwise);

/* The meaning of an acquire's reply. *now_us is 0 if the reply carries no time. An error reply becomes HFI_CANNOT,
 * in_doubt if we do not know the error. */
struct hfi_answer hfi_wire_answer(const struct redisReply *reply, bool native, int64_t *now_us);

/* Name `index` of a recheck: HFI_IN_QUEUE without a ticket (it has not changed), or HFI_ASK_ALONE. */
struct hfi_answer hfi_wire_rechecked(const struct redisReply *reply, int index);

enum hfi_renewed { HFI_RENEW_OK, HFI_RENEW_REMOTE_WAITER, HFI_RENEW_GONE, HFI_RENEW_TAKEN, HFI_RENEW_REVOKED, HFI_RENEW_FAILED };
/* Name `index` of a renewal. REMOTE_WAITER: the lease is ours, and another process waits for it. REVOKED: *revoked is
 * the token to be released, which belongs to the reply. */
enum hfi_renewed hfi_wire_renewed(const struct redisReply *reply, int index, const struct redisReply **revoked);

#endif
