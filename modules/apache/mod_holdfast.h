/* SPDX-License-Identifier: MIT */
/* mod_holdfast.h - what the files of the Apache module share. */
#ifndef MOD_HOLDFAST_H
#define MOD_HOLDFAST_H

#include <holdfast/fetch.h>
#include <httpd.h>
#include <http_config.h>
#include <util_filter.h>
#include <stdatomic.h>

extern module AP_MODULE_DECLARE_DATA holdfast_module __attribute__((visibility("default")));

#define HFM_FENCE   "Holdfast-Fence" /* the request's header that tells the origin under which fence it loads */
#define HFM_PASS_MS 10000 /* how long a page is left alone after an answer that may not be kept */

/* ---- settings.c: the directives ---- */

struct hfm_settings { /* of a directory, a location, a virtual host; they are merged as Apache does it */
    apr_array_header_t *paths; /* of const char *; empty: off; NULL: not said here, like -1 below */
    const char *status_path;
    const char *tag_header;    /* "": none */
    int64_t ttl_ms, stale_ms, near_ms, max_size;
    double jitter;
};

extern const command_rec hfm_directives[];
extern const char *hfm_uri; /* HoldfastServer; NULL: the module is off */

void *hfm_settings_new(apr_pool_t *pool, char *folder);
void *hfm_settings_merge(apr_pool_t *pool, void *outer, void *inner);
bool hfm_settings_want(const struct hfm_settings *settings, const char *path);
int64_t hfm_ttl_ms(const struct hfm_settings *settings);
int64_t hfm_negative_ttl_ms(const struct hfm_settings *settings);
int64_t hfm_stale_ms(const struct hfm_settings *settings);
int64_t hfm_near_ms(const struct hfm_settings *settings);
double hfm_jitter(const struct hfm_settings *settings);
const char *hfm_tag_header(const struct hfm_settings *settings); /* NULL: none */
int64_t hfm_max_size(const struct hfm_settings *settings);

/* ---- rules.c: which requests are looked up, and which answers are kept ---- */

enum hfm_verdict {
    HFM_UNSEEN,
    HFM_KEEP,
    HFM_SAME,   /* the old page is still good */
    HFM_FAILED, /* the origin is in trouble: an old page is better; no reason to leave the page alone */
    HFM_PASS    /* neither kept nor shared */
};

bool hfm_rules_ask(request_rec *r);

/* The verdict about an answer of this status with the headers that r has now; if it is kept, for how long. */
enum hfm_verdict hfm_rules_judge(request_rec *r, int status, const struct hfm_settings *settings, int64_t *ttl_ms);

/* Does Cache-Control (NULL: there is none) say that a page is never given out after its time? */
bool hfm_rules_is_strict(apr_pool_t *pool, const char *control);

/* What came, before Apache redirected it to r. */
request_rec *hfm_rules_first(request_rec *r);

/* The key of a request; NULL: it has none. */
const char *hfm_rules_key(request_rec *r);

/* Does the client take gzip? */
bool hfm_rules_gzip(request_rec *r);

/* All values of an answer's header, with commas between them; NULL: none. */
const char *hfm_rules_header(request_rec *r, const char *name);

/* ---- passing.c: which pages are left alone ---- */

void hfm_passing_begin(void);
void hfm_passing_note(const char *key, int64_t for_ms);
bool hfm_passing_is(const char *key);

/* ---- page.c: an answer as bytes, and back ---- */

/* How the page's tags are kept with it, whatever the header is called at a server: a 304 need not name them again. */
#define HFM_TAGS "Holdfast-Tags"

/* A new block, which free() ends; NULL: no memory. `tags`: the header that names the page's tags, or NULL. */
char *hfm_page_make(request_rec *r, const char *tags, const char *body, size_t body_size, size_t *size);
void hfm_page_hide_tags(request_rec *r, const struct hfm_settings *settings); /* they are not for clients */
bool hfm_page_is_pass(const hf_value *value);

/* An old page that may not be given out any more, because it said so (hfm_rules_is_strict). */
bool hfm_page_is_over(request_rec *r, const struct hfm_settings *settings, const hf_value *value);

/* The headers of a page's bytes, which end with a NUL; NULL: they are no page. */
apr_table_t *hfm_page_headers(apr_pool_t *pool, const void *data, size_t size);
extern const char hfm_pass[]; /* the value of a page that is left alone by the whole fleet */

/* Answers with a page: the value becomes the request's. DECLINED: it is no page, nothing has been done. */
int hfm_page_send(request_rec *r, const struct hfm_settings *settings, hf_value *value, const char *how);

/* ---- collect.c: the loader, which runs the request's own handler and keeps what it says ---- */

struct hfm_load {
    request_rec *r;    /* that asks */
    request_rec *last; /* whose answer is collected: r, or what it was redirected to */
    hf_client *client;
    const struct hfm_settings *settings;
    const char *key;
    apr_table_t *withheld; /* headers of the request that the handler does not see */
    bool is_head, is_local; /* local: loaded without the server */
    apr_table_t *old;       /* the headers of an old page, if the origin is asked whether that is still good */
    ap_filter_t *filter;    /* NULL: what comes is the client's */
    apr_bucket_brigade *failure; /* how an answer has broken off; NULL: it has not */
    enum hfm_verdict verdict;
    bool ran, complete; /* it ended with an EOS, here */
    bool sent;          /* what came went on to the client as it came */
    int rc;             /* the handler's */
    int64_t ttl_ms;
    char *body;
    size_t size, room;
};

void hfm_collect_register(void);
hf_status hfm_collect_load(hf_loading *loading, void *load);
void hfm_collect_join(struct hfm_load *load, request_rec *r);

/* Sends what was collected to the client; returns what the handler has to return. */
int hfm_collect_send(struct hfm_load *load, const char *how);

#endif
