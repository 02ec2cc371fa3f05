/* SPDX-License-Identifier: MIT */
/* loading.c - see loading.h; also the calls that a running loader may make. */
#include "core/fetch/loading.h"
#include "core/context/callback.h"
#include "core/lock/handle.h"
#include "core/protocol/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool loader_is_at(const hf_client *client, const struct hfi_name *key)
{
    for (const struct hfi_callback *at = hfi_callback_innermost(); at != NULL; at = at->outer)
        if (at->client == client && at->loading != NULL && at->loading->key_size == key->size &&
            memcmp(at->loading->key, key->text, key->size) == 0)
            return true;
    return false;
}

hf_status hfi_loader_check(const hf_client *client, const struct hfi_name *key, hf_error *error)
{
    char quoted[160];
    if (!loader_is_at(client, key))
        return HF_OK;
    return hfi_fail(error, HF_DEADLOCK, "a loader may fetch other keys only", "the loader of %s fetches that same key",
                    hfi_quote(quoted, sizeof quoted, key->text, key->size));
}

bool hfi_loader_is_running(void)
{
    const struct hfi_callback *at = hfi_callback_innermost();
    while (at != NULL && at->loading == NULL)
        at = at->outer;
    return at != NULL;
}

struct run {
    struct hf_loading *const *loadings;
    struct hfi_callback *callbacks; /* one for each loading */
    size_t count;
    hf_status status;
};

static void end_callbacks(const struct run *run)
{
    for (size_t i = run->count; i-- > 0;)
        hfi_callback_end(&run->callbacks[i]);
}

/* The loader has ended its thread: nobody can use what it made. */
static void left(void *arg)
{
    struct run *run = arg;
    end_callbacks(run);
    for (size_t i = 0; i < run->count; i++)
        hfi_loading_done(run->loadings[i]);
}

static void call(struct run *run, hf_load_fn *load, hf_load_many_fn *load_many, void *arg)
{
    for (size_t i = 0; i < run->count; i++)
        hfi_callback_begin(&run->callbacks[i], run->loadings[i]->client, run->loadings[i]);
    pthread_cleanup_push(left, run);
    run->status = load != NULL ? load(run->loadings[0], arg) : load_many(run->loadings, run->count, arg);
    pthread_cleanup_pop(0);
    end_callbacks(run);
}

/* One of several is as it was answered, or failed, by itself, whatever the function returned. */
static hf_status of_its_own(const struct hf_loading *loading, hf_status status)
{
    return loading->failed ? HF_LOAD_FAILED : loading->answered ? HF_OK : status;
}

/* What became of one loading, whose loader returned this. */
static hf_status judge(struct hf_loading *loading, hf_status status)
{
    char quoted[160];
    if (status == HF_OK && loading->body != NULL)
        return HF_OK;
    (void)hfi_quote(quoted, sizeof quoted, loading->key, loading->key_size);
    if (status == HF_OK && loading->failure.status == HF_OK)
        status = loading->answered
                     ? hfi_fail(&loading->failure, HF_NOMEM, "", "no memory for the value of %s", quoted)
                     : hfi_fail(&loading->failure, HF_LOAD_FAILED, "call hf_loading_set, _give, _same or _absent before returning HF_OK",
                                "the loader of %s gave no value", quoted);
    else if (loading->failure.status == HF_OK)
        status = hfi_fail(&loading->failure, HF_LOAD_FAILED, "return hf_loading_fail() to say why",
                          "the loader of %s failed: %s", quoted, hf_status_text(status));
    else
        status = loading->failure.status;
    hfi_body_unref(loading->body);
    loading->body = NULL;
    return status;
}

static void run_all(struct run *run, hf_load_fn *load, hf_load_many_fn *load_many, void *arg)
{
    const struct hfi_clock *clock = run->loadings[0]->client->clock;
    int64_t start = hfi_now(clock);
    call(run, load, load_many, arg);
    int64_t took_ms = (hfi_now(clock) - start) / HFI_MS;
    for (size_t i = 0; i < run->count; i++)
        run->loadings[i]->took_ms = took_ms < 1 ? 1 : took_ms;
}

hf_status hfi_loading_run(struct hf_loading *loading, hf_load_fn *load, hf_load_many_fn *load_many, void *arg)
{
    struct hfi_callback callback;
    struct run run = {&loading, &callback, 1, HF_OK};
    run_all(&run, load, load_many, arg);
    return judge(loading, load != NULL ? run.status : of_its_own(loading, run.status));
}

bool hfi_loading_run_many(struct hf_loading *const *loadings, size_t count, hf_load_many_fn *load_many, void *arg, hf_status *statuses)
{
    struct run run = {loadings, calloc(count, sizeof *run.callbacks), count, HF_OK};
    if (run.callbacks == NULL)
        return false;
    run_all(&run, NULL, load_many, arg);
    for (size_t i = 0; i < count; i++)
        statuses[i] = judge(loadings[i], of_its_own(loadings[i], run.status));
    free(run.callbacks);
    return true;
}

void hfi_loading_done(struct hf_loading *loading)
{
    hfi_body_unref(loading->body);
    loading->body = NULL;
    while (loading->tags.count > 0)
        free(loading->tags.keys[--loading->tags.count]);
}

const char *hf_loading_key(const hf_loading *loading)
{
    return loading->key;
}

hf_lease *hf_loading_lease(const hf_loading *loading)
{
    return loading->lease;
}

bool hf_loading_is_wanted(const hf_loading *loading)
{
    if (loading->is_aside && atomic_load(&loading->client->closing))
        return false;
    return loading->lease == NULL || hf_lease_is_valid(loading->lease);
}

static hf_status answer(struct hf_loading *loading, struct hfi_body *body)
{
    loading->body = body;
    loading->answered = true;
    return body != NULL ? HF_OK : HF_NOMEM;
}

static hf_status refuse(struct hf_loading *loading, const char *why)
{
    char quoted[160];
    return hfi_fail(&loading->failure, HF_INVALID, "give one answer: hf_loading_set, _give, _same or _absent", "the loader of %s %s",
                    hfi_quote(quoted, sizeof quoted, loading->key, loading->key_size), why);
}

hf_status hf_loading_set(hf_loading *loading, const void *data, size_t size)
{
    if (loading->answered)
        return refuse(loading, "answered twice");
    if (data == NULL && size > 0)
        return refuse(loading, "gave NULL for data");
    return answer(loading, hfi_body_copy(data, size));
}

/* Copies the data: a value ends with a NUL byte, for which the caller's buffer may have no space. */
hf_status hf_loading_give(hf_loading *loading, void *data, size_t size, void (*free_data)(void *data))
{
    hf_status status = hf_loading_set(loading, data, size);
    if (free_data != NULL)
        free_data(data);
    return status;
}

hf_status hf_loading_absent(hf_loading *loading)
{
    if (loading->answered)
        return refuse(loading, "answered twice");
    return answer(loading, hfi_body_absent());
}

const void *hf_loading_old(const hf_loading *loading, size_t *size)
{
    if (size != NULL)
        *size = loading->old != NULL ? loading->old->size : 0;
    return loading->old != NULL ? loading->old->data : NULL;
}

hf_status hf_loading_same(hf_loading *loading)
{
    if (loading->answered)
        return refuse(loading, "answered twice");
    if (loading->old == NULL)
        return refuse(loading, "keeps an old value, and there is none");
    hfi_body_ref(loading->old);
    loading->same = true;
    return answer(loading, loading->old);
}

/* A value that a purge would not find is not stored. */
static hf_status add_tag(struct hf_loading *loading, const char *text)
{
    char key[HFI_TAG_KEY_MOST], quoted[160];
    struct hfi_tags *tags = &loading->tags;
    struct hfi_name tag;
    (void)hfi_quote(quoted, sizeof quoted, loading->key, loading->key_size);
    hf_status status = hfi_tag_take(text, &tag, &loading->failure);
    if (status != HF_OK)
        return status;
    size_t size = hfi_tag_key(&tag, key);
    for (int i = 0; i < tags->count; i++)
        if (strcmp(tags->keys[i], key) == 0)
            return HF_OK;
    if (tags->count == HF_TAGS_MAX)
        return hfi_fail(&loading->failure, HF_LIMIT, "name fewer, and broader ones", "the value of %s has more than %d tags", quoted,
                        HF_TAGS_MAX);
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return hfi_fail(&loading->failure, HF_NOMEM, "", "no memory for a tag of %s", quoted);
    tags->keys[tags->count++] = memcpy(copy, key, size + 1);
    return HF_OK;
}

hf_status hf_loading_tag(hf_loading *loading, const char *tag)
{
    hf_status status = add_tag(loading, tag);
    loading->untagged = loading->untagged || status != HF_OK;
    return status;
}

int64_t hfi_loading_fresh_ms(const struct hf_loading *loading)
{
    int64_t ttl_ms = loading->body->absent ? loading->absent_ms : loading->ttl_ms;
    return ttl_ms == HF_OFF ? 0 : ttl_ms;
}

void hf_loading_set_ttl(hf_loading *loading, int64_t ttl_ms)
{
    if ((ttl_ms > 0 && ttl_ms <= HFI_LONGEST_MS) || ttl_ms == HF_OFF)
        loading->ttl_ms = ttl_ms;
}

hf_status hf_loading_fail(hf_loading *loading, int os_errno, const char *message)
{
    char key[160], why[240];
    (void)hfi_fail(&loading->failure, HF_LOAD_FAILED, os_errno != 0 ? strerrordesc_np(os_errno) : "",
                   "the loader of %s failed: %s", hfi_quote(key, sizeof key, loading->key, loading->key_size),
                   message != NULL ? hfi_quote(why, sizeof why, message, strlen(message)) : "it did not say why");
    hfi_fail_errno(&loading->failure, os_errno);
    loading->failed = true;
    return HF_LOAD_FAILED;
}
