/* SPDX-License-Identifier: MIT */
/* page.c - an answer as the bytes that are kept in Redis, and those bytes as an answer. They are what HTTP itself would say:
 * status line, headers, an empty line, the body. Date and Age in it tell when it was loaded, and how old it was then. */
#include "modules/apache/mod_holdfast.h"

#include <apr_buckets.h>
#include <apr_date.h>
#include <apr_strings.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdlib.h>

#define VERSION "HTTP/1.1 "

const char hfm_pass[] = "pass";

/* Not kept: what belongs to one connection, and what is made anew for each answer. Server is a proxied origin's; where
 * there is none Apache says its own. */
static const char *const unkept[] = {"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE",
                                     "Trailer", "Transfer-Encoding", "Upgrade", "Date", "Age", "Content-Length",
                                     "Content-Type", "Content-Encoding", HFM_TAGS, NULL};

struct head {
    request_rec *r;
    const char *connection; /* the header of that name: it names more that belongs to the connection */
    const char *tags;       /* which header names them; NULL: none */
};

static bool is_kept(const struct head *head, const char *name)
{
    for (size_t i = 0; unkept[i] != NULL; i++)
        if (ap_cstr_casecmp(name, unkept[i]) == 0)
            return false;
    if (head->tags != NULL && ap_cstr_casecmp(name, head->tags) == 0)
        return false;
    return head->connection == NULL || !ap_find_token(head->r->pool, head->connection, name);
}

static void add_line(apr_array_header_t *lines, apr_pool_t *pool, const char *name, const char *value)
{
    if (value != NULL && strpbrk(value, "\r\n") == NULL)
        APR_ARRAY_PUSH(lines, const char *) = apr_pstrcat(pool, name, ": ", value, "\r\n", NULL);
}

static void unset(request_rec *r, const char *name)
{
    apr_table_unset(r->headers_out, name);
    apr_table_unset(r->err_headers_out, name);
}

/* Languages are said beside the headers; Apache puts them there, as here, only when it sends an answer. */
static void settle_languages(request_rec *r)
{
    const char *said = hfm_rules_header(r, "Content-Language"), *item, *all;
    if (apr_is_empty_array(r->content_languages))
        return;
    all = apr_array_pstrcat(r->pool, r->content_languages, ',');
    while (said != NULL && (item = ap_get_list_item(r->pool, &said)) != NULL)
        if (!ap_find_list_item(r->pool, all, item))
            all = apr_pstrcat(r->pool, all, ",", item, NULL);
    unset(r, "Content-Language");
    apr_table_setn(r->headers_out, "Content-Language", all);
    r->content_languages = NULL;
}

/* What may be said in one place or another gets one, so that the first client and those after him hear the same. */
static void settle(request_rec *r)
{
    if (r->content_type == NULL)
        ap_set_content_type(r, hfm_rules_header(r, "Content-Type"));
    if (r->content_encoding == NULL)
        r->content_encoding = hfm_rules_header(r, "Content-Encoding");
    settle_languages(r);
    if (apr_table_get(r->notes, "no-etag") != NULL) /* FileETag None: Apache sends none, whoever says one */
        unset(r, "ETag");
}

static const char *head_of(request_rec *r, const char *tags)
{
    apr_array_header_t *lines = apr_array_make(r->pool, 16, sizeof(const char *));
    struct head head = {.r = r, .connection = hfm_rules_header(r, "Connection"), .tags = tags};
    const apr_table_t *const tables[] = {r->err_headers_out, r->headers_out}; /* Apache's order */
    char *date = apr_palloc(r->pool, APR_RFC822_DATE_LEN);
    (void)apr_rfc822_date(date, apr_time_now());
    APR_ARRAY_PUSH(lines, const char *) = apr_psprintf(r->pool, VERSION "%d\r\n", r->status);
    add_line(lines, r->pool, "Date", date);
    add_line(lines, r->pool, "Age", hfm_rules_header(r, "Age"));
    add_line(lines, r->pool, "Content-Type", r->content_type);
    add_line(lines, r->pool, "Content-Encoding", r->content_encoding);
    add_line(lines, r->pool, HFM_TAGS, tags != NULL ? hfm_rules_header(r, tags) : NULL);
    for (size_t i = 0; i < 2; i++) {
        const apr_array_header_t *all = apr_table_elts(tables[i]);
        for (int n = 0; n < all->nelts; n++) {
            const apr_table_entry_t *entry = &APR_ARRAY_IDX(all, n, apr_table_entry_t);
            if (is_kept(&head, entry->key))
                add_line(lines, r->pool, entry->key, entry->val);
        }
    }
    APR_ARRAY_PUSH(lines, const char *) = "\r\n";
    return apr_array_pstrcat(r->pool, lines, '\0');
}

char *hfm_page_make(request_rec *r, const char *tags, const char *body, size_t body_size, size_t *size)
{
    settle(r);
    const char *head = head_of(r, tags);
    size_t head_size = strlen(head);
    char *page = malloc(head_size + body_size + 1);
    if (page == NULL)
        return NULL;
    memcpy(page, head, head_size);
    if (body_size > 0)
        memcpy(page + head_size, body, body_size);
    *size = head_size + body_size;
    return page;
}

void hfm_page_hide_tags(request_rec *r, const struct hfm_settings *settings)
{
    const char *name = hfm_tag_header(settings);
    if (name != NULL)
        unset(r, name);
}

bool hfm_page_is_pass(const hf_value *value)
{
    return value->size == strlen(hfm_pass) && memcmp(value->data, hfm_pass, value->size) == 0;
}

/* The headers of a page, and where its body begins; NULL: the bytes are somebody else's. */
static apr_table_t *read_head(apr_pool_t *pool, const char *data, size_t size, int *status, size_t *body_at)
{
    const char *end;
    size_t version = strlen(VERSION);
    if (size < version + 4 || memcmp(data, VERSION, version) != 0 ||
        (end = strstr(data, "\r\n\r\n")) == NULL) /* it ends with a NUL, so this ends too */
        return NULL;
    *body_at = (size_t)(end - data) + 4;
    *status = atoi(data + version);
    apr_table_t *headers = apr_table_make(pool, 16);
    char *head = apr_pstrmemdup(pool, data, (size_t)(end - data)), *rest;
    (void)apr_strtok(head, "\r\n", &rest);
    for (char *line; (line = apr_strtok(NULL, "\r\n", &rest)) != NULL;) {
        char *value_at = strstr(line, ": ");
        if (value_at == NULL)
            return NULL;
        *value_at = '\0';
        apr_table_addn(headers, line, value_at + 2);
    }
    return *status == HTTP_OK || *status == HTTP_MOVED_PERMANENTLY || *status == HTTP_NOT_FOUND ? headers : NULL;
}

apr_table_t *hfm_page_headers(apr_pool_t *pool, const void *data, size_t size)
{
    int status;
    size_t body_at;
    return read_head(pool, data, size, &status, &body_at);
}

bool hfm_page_is_over(request_rec *r, const struct hfm_settings *settings, const hf_value *value)
{
    apr_time_t since = apr_time_now() - r->request_time; /* its load may have taken long, and failed */
    int64_t left_ms = value->fresh_ms + hfm_stale_ms(settings) - apr_time_as_msec(since);
    if (value->source != HF_STALE || value->absent || (value->stored && left_ms > 0))
        return false;
    apr_table_t *headers = hfm_page_headers(r->pool, value->data, value->size);
    return headers != NULL && hfm_rules_is_strict(r->pool, apr_table_getm(r->pool, headers, "Cache-Control"));
}

static const char *take(apr_table_t *headers, const char *name)
{
    const char *value = apr_table_get(headers, name);
    apr_table_unset(headers, name);
    return value;
}

static void answer_with(request_rec *r, int status, apr_table_t *headers)
{
    r->status = status;
    r->status_line = NULL;
    r->content_languages = NULL;
    r->content_encoding = take(headers, "Content-Encoding");
    r->content_type = NULL;
    const char *type = take(headers, "Content-Type");
    if (type != NULL)
        ap_set_content_type(r, type);
    const apr_array_header_t *all = apr_table_elts(headers);
    for (int n = 0; n < all->nelts; n++) {
        apr_table_unset(r->headers_out, APR_ARRAY_IDX(all, n, apr_table_entry_t).key);
        apr_table_unset(r->err_headers_out, APR_ARRAY_IDX(all, n, apr_table_entry_t).key);
    }
    for (int n = 0; n < all->nelts; n++)
        apr_table_addn(r->headers_out, APR_ARRAY_IDX(all, n, apr_table_entry_t).key, APR_ARRAY_IDX(all, n, apr_table_entry_t).val);
}

/* Seconds since it was loaded, or since the origin said that it is still good: its bytes do not tell of that, its end does. */
static int64_t seconds_kept(request_rec *r, const struct hfm_settings *settings, const char *date, const hf_value *value)
{
    int64_t ttl_ms;
    apr_time_t loaded = date != NULL ? apr_date_parse_http(date) : 0, now = apr_time_now();
    int64_t kept_ms = loaded > 0 && now > loaded ? apr_time_as_msec(now - loaded) : 0;
    if (value->stored && hfm_rules_judge(r, r->status, settings, &ttl_ms) == HFM_KEEP && ttl_ms - value->fresh_ms < kept_ms)
        kept_ms = ttl_ms > value->fresh_ms ? ttl_ms - value->fresh_ms : 0;
    return kept_ms / 1000;
}

static void set_age(request_rec *r, const struct hfm_settings *settings, const char *date, const char *before, const hf_value *value)
{
    int64_t seconds = seconds_kept(r, settings, date, value) + (before != NULL ? apr_strtoi64(before, NULL, 10) : 0);
    apr_table_setn(r->headers_out, "Age", apr_psprintf(r->pool, "%" PRId64, seconds));
}

static apr_status_t free_value(void *value)
{
    hf_value_free(value);
    return APR_SUCCESS;
}

int hfm_page_send(request_rec *r, const struct hfm_settings *settings, hf_value *value, const char *how)
{
    int status;
    size_t body_at;
    apr_table_t *headers = read_head(r->pool, value->data, value->size, &status, &body_at);
    if (headers == NULL)
        return DECLINED;
    apr_pool_cleanup_register(r->pool, value, free_value, apr_pool_cleanup_null);
    const char *date = take(headers, "Date"), *before = apr_table_get(headers, "Age");
    apr_table_unset(headers, HFM_TAGS);
    hfm_page_hide_tags(r, settings);
    answer_with(r, status, headers);
    set_age(r, settings, date, before, value);
    apr_table_mergen(r->headers_out, "Cache-Status", how);
    const char *modified = apr_table_get(r->headers_out, "Last-Modified");
    if (modified != NULL)
        ap_update_mtime(r, apr_date_parse_http(modified));
    int rc = status == HTTP_OK ? ap_meets_conditions(r) : OK;
    if (rc != OK)
        return rc;
    ap_set_content_length(r, (apr_off_t)(value->size - body_at));
    apr_bucket_alloc_t *from = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, from);
    if (value->size > body_at) /* copied if it is still to be sent when the request ends, as with HTTP/2 */
        APR_BRIGADE_INSERT_TAIL(
            brigade, apr_bucket_pool_create((const char *)value->data + body_at, value->size - body_at, r->pool, from));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(from));
    (void)ap_pass_brigade(r->proto_output_filters, brigade); /* the content filters have been at work when it was loaded */
    return OK;
}
