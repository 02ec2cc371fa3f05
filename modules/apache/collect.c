/* SPDX-License-Identifier: MIT */
/*
 * collect.c - the loader. It runs the request's own handler, behind which a filter holds back what it says until it is known
 * whether that may be kept, and then until it is whole: a slow client shall not keep others waiting. What may not be kept
 * goes on to the client as it comes.
 *
 * No subrequest: the handler runs once whether its answer is kept or not, with this request's access control, environment,
 * log line and error documents. A handler may redirect within the server; the filter is then set upon the new request. Its
 * answer is not kept: who may have it has been asked of that request, and would not be for a hit.
 */
#include "modules/apache/mod_holdfast.h"

#include <apr_buckets.h>
#include <apr_date.h>
#include <apr_strings.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <http_connection.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdlib.h>

APLOG_USE_MODULE(holdfast);

static ap_filter_rec_t *filter;

/* A page is loaded whole, in the one form in which it is kept, whatever part or form this client asks for. */
static const char *const withheld[] = {"Range",       "If-Range",          "If-Match",       "If-None-Match", "If-Modified-Since",
                                       "If-Unmodified-Since", "Accept-Encoding", NULL};

static void set_head(struct hfm_load *load, bool is_head)
{
    for (request_rec *r = load->r; load->is_head && r != NULL; r = r->next) {
        r->header_only = is_head;
        r->method = is_head ? "HEAD" : "GET";
    }
}

static void withhold(struct hfm_load *load, const hf_lease *lease)
{
    apr_table_t *headers = load->r->headers_in;
    bool gzip = hfm_rules_gzip(load->r);
    load->withheld = apr_table_make(load->r->pool, 4);
    load->is_head = load->r->header_only;
    for (size_t i = 0; withheld[i] != NULL; i++) {
        const char *value = apr_table_get(headers, withheld[i]);
        if (value != NULL)
            apr_table_setn(load->withheld, withheld[i], value);
        apr_table_unset(headers, withheld[i]);
    }
    if (gzip)
        apr_table_setn(headers, "Accept-Encoding", "gzip");
    if (lease != NULL) /* so that the origin can tell a late load from a newer one */
        apr_table_setn(headers, HFM_FENCE, apr_psprintf(load->r->pool, "%" PRId64, hf_lease_fence(lease)));
    set_head(load, false);
}

static void give_back(struct hfm_load *load)
{
    if (load->withheld != NULL) {
        for (size_t i = 0; withheld[i] != NULL; i++)
            apr_table_unset(load->r->headers_in, withheld[i]);
        apr_table_unset(load->r->headers_in, HFM_FENCE);
        apr_table_overlap(load->r->headers_in, load->withheld, APR_OVERLAP_TABLES_SET);
    }
    load->withheld = NULL;
    set_head(load, load->is_head);
}

static bool keep(struct hfm_load *load, const char *data, size_t size)
{
    if (size > load->room - load->size) {
        size_t room = (load->size + size) * 2;
        char *body = realloc(load->body, room);
        if (body == NULL)
            return false;
        load->body = body;
        load->room = room;
    }
    memcpy(load->body + load->size, data, size);
    load->size += size;
    return true;
}

/* The origin of an old page may say that it is still good. */
static void ask_for_changes(struct hfm_load *load, hf_loading *loading)
{
    static const char *const conditions[][2] = {{"ETag", "If-None-Match"}, {"Last-Modified", "If-Modified-Since"}};
    size_t size;
    const void *old = hf_loading_old(loading, &size);
    apr_table_t *headers = old != NULL ? hfm_page_headers(load->r->pool, old, size) : NULL;
    for (size_t i = 0; headers != NULL && i < sizeof conditions / sizeof *conditions; i++) {
        const char *value = apr_table_get(headers, conditions[i][0]);
        if (value != NULL)
            apr_table_setn(load->r->headers_in, conditions[i][1], value);
        load->old = value != NULL ? headers : load->old;
    }
}

/* What has been held back, before what comes now. */
static apr_bucket_brigade *brigade_of(struct hfm_load *load, apr_bucket_brigade *rest)
{
    apr_bucket_alloc_t *from = load->last->connection->bucket_alloc;
    if (rest == NULL) {
        rest = apr_brigade_create(load->last->pool, from);
        APR_BRIGADE_INSERT_TAIL(rest, apr_bucket_eos_create(from));
    }
    if (load->size > 0) /* as in page.c; free_body comes after the bucket's own cleanup */
        APR_BRIGADE_INSERT_HEAD(rest, apr_bucket_pool_create(load->body, load->size, load->r->pool, from));
    return rest;
}

/* The whole fleet is told at once where the answer will take its time: others may be waiting for it. Nothing is told in the
 * place of a page: that may be newer than this load, whose lease may be over; and who sees an old one does not wait. */
static void tell_of_pass(struct hfm_load *load, const apr_bucket_brigade *rest)
{
    struct redisReply *reply = NULL;
    hfm_passing_note(load->key, HFM_PASS_MS);
    if (load->is_local || (!APR_BRIGADE_EMPTY(rest) && APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(rest))))
        return;
    int64_t ms = HFM_PASS_MS + hfm_stale_ms(load->settings);
    if (hf_command(load->client, &reply, NULL, "SET %s %s NX PX %lld", load->key, hfm_pass, (long long)ms) == HF_OK)
        freeReplyObject(reply);
}

static apr_status_t let_go(struct hfm_load *load, enum hfm_verdict verdict, apr_bucket_brigade *rest)
{
    ap_filter_t *next = load->filter->next;
    ap_remove_output_filter(load->filter);
    load->filter = NULL;
    load->verdict = verdict;
    load->sent = true;
    give_back(load);
    hfm_page_hide_tags(load->last, load->settings);
    if (verdict == HFM_PASS) {
        apr_table_mergen(load->last->headers_out, "Cache-Status", "holdfast; fwd=miss; detail=PASS");
        tell_of_pass(load, rest);
    }
    return ap_pass_brigade(next, brigade_of(load, rest));
}

/* An error, or that the client's connection is to be closed: what mod_proxy says where an origin breaks off. */
static bool breaks_off(const apr_bucket *bucket)
{
    return AP_BUCKET_IS_ERROR(bucket) || AP_BUCKET_IS_EOC(bucket);
}

/* It is asked before an answer is judged: mod_proxy forbids that one that has broken off is cached. */
static bool has_broken_off(const apr_bucket_brigade *brigade)
{
    const apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);
    while (bucket != APR_BRIGADE_SENTINEL(brigade) && !breaks_off(bucket))
        bucket = APR_BUCKET_NEXT(bucket);
    return bucket != APR_BRIGADE_SENTINEL(brigade);
}

/* How an answer has broken off waits until it is known whether there is an old page, which is better. Nothing of the answer itself: it
 * may have to be read still, from a connection that is the next request's by then. */
static apr_status_t hold(struct hfm_load *load, apr_bucket_brigade *rest)
{
    apr_bucket_alloc_t *from = load->r->connection->bucket_alloc;
    if (load->failure == NULL) {
        load->failure = apr_brigade_create(load->r->pool, from);
        if (!has_broken_off(rest)) /* the server's own reading has failed */
            APR_BRIGADE_INSERT_TAIL(load->failure, ap_bucket_error_create(HTTP_BAD_GATEWAY, NULL, load->r->pool, from));
    }
    while (!APR_BRIGADE_EMPTY(rest)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(rest);
        APR_BUCKET_REMOVE(bucket);
        if (APR_BUCKET_IS_METADATA(bucket))
            APR_BRIGADE_INSERT_TAIL(load->failure, bucket);
        else
            apr_bucket_destroy(bucket);
    }
    load->verdict = HFM_FAILED;
    return APR_SUCCESS;
}

/* Takes what a brigade has. False: it cannot be taken, and the bucket at its head and all behind it are still there. */
static bool take_all(struct hfm_load *load, apr_bucket_brigade *brigade, enum hfm_verdict *instead)
{
    const char *data;
    apr_size_t size;
    while (!load->complete && !APR_BRIGADE_EMPTY(brigade)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);
        load->complete = APR_BUCKET_IS_EOS(bucket);
        *instead = HFM_FAILED;
        if (breaks_off(bucket))
            return false;
        if (!APR_BUCKET_IS_METADATA(bucket)) {
            if (apr_bucket_read(bucket, &data, &size, APR_BLOCK_READ) != APR_SUCCESS)
                return false;
            *instead = HFM_PASS;
            if (size > (size_t)hfm_max_size(load->settings) - load->size || !keep(load, data, size))
                return false;
        }
        apr_bucket_delete(bucket);
    }
    return true;
}

/* "Not modified" is for us, if we have asked. What may not be kept any more is left alone by this process, and asked for again. */
static enum hfm_verdict judge(struct hfm_load *load, int status)
{
    static const char *const lasting[] = {"Cache-Control", "Expires"}; /* what it need not say again */
    bool is_same = status == HTTP_NOT_MODIFIED && load->old != NULL;
    for (size_t i = 0; is_same && i < sizeof lasting / sizeof *lasting; i++) {
        const char *before = apr_table_getm(load->r->pool, load->old, lasting[i]); /* it may be in several lines */
        if (hfm_rules_header(load->last, lasting[i]) == NULL && before != NULL)
            apr_table_setn(load->last->headers_out, lasting[i], before);
    }
    enum hfm_verdict verdict = hfm_rules_judge(load->last, is_same ? HTTP_OK : status, load->settings, &load->ttl_ms);
    if (load->last != load->r && verdict == HFM_KEEP)
        verdict = HFM_PASS;
    if (is_same && verdict == HFM_PASS) {
        hfm_passing_note(load->key, HFM_PASS_MS);
        load->ttl_ms = HF_OFF; /* not stored: the old page lives no longer for it, at no server */
    }
    return is_same ? HFM_SAME : verdict;
}

static apr_status_t collect(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    struct hfm_load *load = f->ctx;
    enum hfm_verdict instead;
    if (load->failure != NULL)
        return hold(load, brigade);
    if (load->verdict == HFM_UNSEEN)
        load->verdict = has_broken_off(brigade) ? HFM_FAILED : judge(load, load->last->status);
    if (load->verdict == HFM_PASS)
        return let_go(load, HFM_PASS, brigade);
    if (take_all(load, brigade, &instead))
        return APR_SUCCESS;
    return instead == HFM_PASS ? let_go(load, HFM_PASS, brigade) : hold(load, brigade);
}

void hfm_collect_register(void)
{
    filter = ap_register_output_filter("HOLDFAST", collect, NULL, (ap_filter_type)(AP_FTYPE_PROTOCOL - 1));
}

void hfm_collect_join(struct hfm_load *load, request_rec *r)
{
    if (load->sent || load->complete)
        return;
    load->last = r;
    load->filter = ap_add_output_filter_handle(filter, load, r, r->connection);
}

static apr_status_t free_body(void *data)
{
    free(((struct hfm_load *)data)->body);
    return APR_SUCCESS;
}

/* What Apache says itself of an error goes past all filters but the protocol's, and is complete. */
static bool was_answered_past_us(const struct hfm_load *load)
{
    const ap_filter_t *at = load->last->output_filters;
    while (at != NULL && at != load->filter)
        at = at->next;
    return load->filter != NULL && at == NULL && load->last->eos_sent;
}

/* A handler need not end its answer itself; it may also have gone, and left it to another thread to answer. */
static void end_answer(struct hfm_load *load)
{
    apr_bucket_alloc_t *from = load->r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(load->r->pool, from);
    if (load->last->next != NULL || was_answered_past_us(load)) /* next: it has told us nothing; it was refused, perhaps */
        load->sent = true;
    if (load->complete || load->sent || load->failure != NULL)
        return;
    if (load->rc == SUSPENDED) {
        (void)let_go(load, HFM_FAILED, brigade);
    } else if (load->rc == OK && load->last->eos_sent) { /* a filter in front of us has it: it has failed */
        (void)hold(load, brigade);
    } else if (load->rc == OK) {
        APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(from));
        (void)ap_pass_brigade(load->last->output_filters, brigade);
    }
}

static void run(struct hfm_load *load, hf_loading *loading)
{
    withhold(load, hf_loading_lease(loading));
    ask_for_changes(load, loading);
    hfm_collect_join(load, load->r);
    load->rc = ap_run_handler(load->r);
    end_answer(load);
    give_back(load);
    if (load->filter != NULL)
        ap_remove_output_filter(load->filter);
    load->filter = NULL;
    for (request_rec *r = load->r; !load->sent && r != NULL; r = r->next)
        r->eos_sent = 0; /* the EOS has come to us only */
}

static bool is_whole(struct hfm_load *load)
{
    const char *length = apr_table_get(load->last->headers_out, "Content-Length");
    return load->complete && !load->last->connection->aborted &&
           (length == NULL || apr_strtoi64(length, NULL, 10) == (int64_t)load->size);
}

static hf_status say_pass(struct hfm_load *load, hf_loading *loading)
{
    hfm_passing_note(load->key, HFM_PASS_MS);
    hf_loading_set_ttl(loading, HFM_PASS_MS);
    return hf_loading_set(loading, hfm_pass, strlen(hfm_pass));
}

/* A page of which a tag cannot be named is not stored: hf_loading_tag sees to that. */
static void name_tags(struct hfm_load *load, hf_loading *loading, const apr_table_t *before)
{
    const char *name = hfm_tag_header(load->settings), *tags = name != NULL ? hfm_rules_header(load->last, name) : NULL;
    if (name != NULL && tags == NULL && before != NULL)
        tags = apr_table_get(before, HFM_TAGS);
    char *rest, *copy = tags != NULL ? apr_pstrdup(load->r->pool, tags) : NULL;
    for (char *tag = copy != NULL ? apr_strtok(copy, ", ", &rest) : NULL; tag != NULL; tag = apr_strtok(NULL, ", ", &rest))
        (void)hf_loading_tag(loading, tag);
}

/* A 304 need not say again which tags the page has. */
static hf_status say_same(struct hfm_load *load, hf_loading *loading)
{
    hf_loading_set_ttl(loading, load->ttl_ms);
    name_tags(load, loading, load->old);
    return hf_loading_same(loading);
}

static hf_status say_page(struct hfm_load *load, hf_loading *loading)
{
    size_t size;
    char *page = hfm_page_make(load->last, hfm_tag_header(load->settings), load->body, load->size, &size);
    if (page == NULL)
        return hf_loading_fail(loading, ENOMEM, "no memory for the page");
    hf_loading_set_ttl(loading, load->ttl_ms);
    name_tags(load, loading, NULL);
    return hf_loading_give(loading, page, size, free);
}

/* The handler has refused and said nothing; Apache makes the error's page when we are through. */
static enum hfm_verdict judge_refusal(struct hfm_load *load)
{
    if (load->rc == HTTP_NOT_MODIFIED)
        return judge(load, load->rc);
    if (load->rc < HTTP_BAD_REQUEST) /* DECLINED, SUSPENDED, DONE; a redirect */
        return load->rc > 0 ? HFM_PASS : HFM_FAILED;
    return hfm_rules_judge(load->last, load->rc, load->settings, &load->ttl_ms);
}

hf_status hfm_collect_load(hf_loading *loading, void *arg)
{
    struct hfm_load *load = arg;
    load->ran = true;
    apr_pool_cleanup_register(load->r->pool, load, free_body, apr_pool_cleanup_null);
    load->is_local = hf_loading_lease(loading) == NULL;
    run(load, loading);
    if (!load->sent && !load->complete && load->rc != OK) {
        load->verdict = judge_refusal(load);
        if (load->verdict == HFM_KEEP && load->last == load->r)
            return hf_loading_absent(loading);
    }
    if (load->verdict == HFM_SAME && !load->sent)
        return say_same(load, loading);
    if (load->verdict == HFM_PASS)
        return say_pass(load, loading);
    if (load->verdict == HFM_KEEP && is_whole(load))
        return say_page(load, loading);
    return hf_loading_fail(loading, EIO, "the origin has no whole answer");
}

int hfm_collect_send(struct hfm_load *load, const char *how)
{
    request_rec *r = load->last;
    if (load->failure != NULL) { /* as without us: an error's page, or the end of the connection */
        hfm_page_hide_tags(r, load->settings);
        (void)ap_pass_brigade(r->proto_output_filters, brigade_of(load, load->failure));
        return load->rc == SUSPENDED ? SUSPENDED : OK;
    }
    if (load->sent || !load->complete)
        return load->rc;
    const char *modified = apr_table_get(r->headers_out, "Last-Modified");
    if (modified != NULL)
        ap_update_mtime(r, apr_date_parse_http(modified));
    apr_table_mergen(r->headers_out, "Cache-Status", how);
    hfm_page_hide_tags(r, load->settings);
    int rc = r->status == HTTP_OK && r == load->r ? ap_meets_conditions(r) : OK;
    if (rc != OK)
        return rc;
    if (is_whole(load))
        ap_set_content_length(r, (apr_off_t)load->size);
    (void)ap_pass_brigade(r->proto_output_filters, brigade_of(load, NULL));
    return OK;
}
