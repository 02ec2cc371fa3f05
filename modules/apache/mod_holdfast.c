/* SPDX-License-Identifier: MIT */
/*
 * mod_holdfast.c - pages of Apache, loaded once for the whole fleet.
 *
 *   handler ----not ours: another method, a body, Authorization, ... --> DECLINED: as without the module
 *      |--------mod_rewrite's redirect within the server --------------> DECLINED: the new request comes here too
 *      |--------a page that is left alone for now ---------------------> DECLINED
 *      `- hf_fetch -- a page --------------------> it is sent, and nothing of Apache's runs but access control
 *             |----- "pass", an error -----------> DECLINED
 *             `----- the loader ran here --------> what the request's own handler said, kept or not
 *
 * A handler, not a quick handler: that would give pages out before anybody has looked who may have them.
 */
#include "modules/apache/mod_holdfast.h"

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>
#include <stdlib.h>

APLOG_USE_MODULE(holdfast);

/* A waiter looks around after so long: its page may have turned out to be one that is not shared. */
#define LOOK_MS     500
#define LONGEST_MS  30000 /* the max_load_ms of hf_fetch: after so long another one loads */
#define COMPLAINT_S 10    /* a trouble that each request meets is logged so often */

static hf_client *_Atomic client; /* of this child; NULL: not open */
static atomic_int users;          /* requests that may be using it */

/* ---- the child's client ---- */

static void log_line(hf_log_level level, const char *line, void *server)
{
    static const int levels[] = {APLOG_ERR, APLOG_ERR, APLOG_WARNING, APLOG_INFO, APLOG_DEBUG};
    ap_log_error(APLOG_MARK, levels[level], 0, (const server_rec *)server, "holdfast: %s", line);
}

/* The threads of a child have ended by now. Not so where it is killed by a signal handler in the middle of a request (prefork):
 * the client could not wait for that. The server ends a lease by itself. */
static apr_status_t close_client(void *nothing)
{
    (void)nothing;
    hf_client *mine = atomic_exchange(&client, NULL);
    if (atomic_load(&users) == 0)
        (void)hf_client_close(mine, NULL);
    return APR_SUCCESS;
}

static hf_status open_client(server_rec *server, hf_client **opened)
{
    hf_error error;
    hf_status status = hf_client_open(hfm_uri, HF_CLIENT(.lazy = true, .log = log_line, .log_arg = server), opened, &error);
    if (status != HF_OK)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server, "HoldfastServer: %s; %s", error.message, error.hint);
    return status;
}

static void begin_child(apr_pool_t *pool, server_rec *server)
{
    hf_client *opened;
    if (hfm_uri == NULL || open_client(server, &opened) != HF_OK)
        return;
    hfm_passing_begin();
    atomic_store(&client, opened);
    apr_pool_cleanup_register(pool, NULL, close_client, apr_pool_cleanup_null);
}

static int begin_configuration(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary)
{
    (void)pool, (void)log_pool, (void)temporary;
    hfm_uri = NULL;
    return OK;
}

/* A wrong URI is said when Apache is started, and by `apachectl configtest`, not by each child later. */
static int check_configuration(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary, server_rec *server)
{
    (void)pool, (void)log_pool, (void)temporary;
    hf_client *tried = NULL;
    if (hfm_uri != NULL && open_client(server, &tried) != HF_OK)
        return HTTP_INTERNAL_SERVER_ERROR;
    (void)hf_client_close(tried, NULL);
    return OK;
}

/* ---- a request ---- */

static const char *name_of(hf_source source)
{
    static const char *const names[] = {"NONE", "CACHED", "LOADED", "SHARED", "STALE", "LOCAL", "NEAR"};
    return (size_t)source < sizeof names / sizeof *names ? names[source] : "OTHER";
}

/* For Cache-Status (RFC 9211), and for log lines: %{HOLDFAST}e. */
static const char *note(request_rec *r, const struct hfm_load *load, const hf_value *value)
{
    const char *name = value != NULL ? name_of(value->source) : load->verdict == HFM_PASS ? "PASS" : "FAILED";
    apr_table_setn(r->subprocess_env, "HOLDFAST", name);
    if (load->ran && (value == NULL || value->source != HF_STALE))
        return apr_psprintf(r->pool, "holdfast; fwd=miss%s; detail=%s", value != NULL && value->stored ? "; stored" : "", name);
    return apr_psprintf(r->pool, "holdfast; hit; ttl=%" PRId64 "; detail=%s", value->fresh_ms / 1000, name);
}

static void complain(request_rec *r, hf_status status, const hf_error *error)
{
    static _Atomic(apr_time_t) last;
    apr_time_t before = atomic_load(&last), now = apr_time_now();
    if (status == HF_LOAD_FAILED || status == HF_TIMEOUT || now - before < apr_time_from_sec(COMPLAINT_S) ||
        !atomic_compare_exchange_strong(&last, &before, now))
        return;
    ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "holdfast: %s; %s; served without it", error->message, error->hint);
}

static hf_status fetch(struct hfm_load *load, hf_value **value)
{
    hf_error error;
    hf_status status;
    apr_time_t end = apr_time_now() + apr_time_from_msec(LONGEST_MS);
    const struct hfm_settings *s = load->settings;
    const hf_fetch_options *options = HF_FETCH(.load = hfm_collect_load, .arg = load, .ttl_ms = hfm_ttl_ms(s),
                                               .stale_ms = hfm_stale_ms(s), .negative_ttl_ms = hfm_negative_ttl_ms(s),
                                               .wait_ms = LOOK_MS, .max_load_ms = LONGEST_MS, .near_ms = hfm_near_ms(s),
                                               .jitter = hfm_jitter(s));
    do
        status = hf_fetch(load->client, load->key, options, value, &error);
    while (status == HF_TIMEOUT && !load->ran && !hfm_passing_is(load->key) && apr_time_now() < end);
    if (status != HF_OK)
        complain(load->r, status, &error);
    return status;
}

/* The answer of the handler, which has run: it is never run twice. An old page is better than an error. */
static int answer_loaded(struct hfm_load *load, hf_value *value)
{
    int rc = DECLINED;
    bool is_page = value != NULL && !value->absent && !hfm_page_is_pass(value) && !hfm_page_is_over(load->r, load->settings, value);
    bool is_better = is_page && !load->sent &&
                     (load->verdict == HFM_SAME || (load->verdict == HFM_FAILED && value->source == HF_STALE));
    const char *how = note(load->last, load, value);
    if (is_better) {
        apr_table_clear(load->last->headers_out);
        load->last->no_cache = 0; /* mod_proxy says so where an origin breaks off; Apache would make an Expires of it */
        rc = hfm_page_send(load->last, load->settings, value, how);
    }
    if (rc != DECLINED)
        return rc;
    hf_value_free(value);
    return load->verdict == HFM_SAME && !load->sent ? HTTP_SERVICE_UNAVAILABLE : hfm_collect_send(load, how);
}

static int answer_found(struct hfm_load *load, hf_value *value)
{
    int rc = DECLINED;
    if (value->absent)
        rc = HTTP_NOT_FOUND;
    else if (hfm_page_is_pass(value))
        hfm_passing_note(load->key, value->fresh_ms < HFM_PASS_MS ? value->fresh_ms : HFM_PASS_MS);
    else if (!hfm_page_is_over(load->r, load->settings, value))
        rc = hfm_page_send(load->r, load->settings, value, note(load->r, load, value));
    if (rc == DECLINED || value->absent)
        hf_value_free(value);
    return rc;
}

static int answer(request_rec *r, hf_client *mine, const struct hfm_settings *settings)
{
    hf_value *value = NULL;
    const char *key = hfm_rules_ask(r) ? hfm_rules_key(r) : NULL;
    if (key == NULL || hfm_passing_is(key))
        return DECLINED;
    struct hfm_load *load = apr_pcalloc(r->pool, sizeof *load);
    apr_table_setn(r->notes, "holdfast-key", key); /* for log lines: %{holdfast-key}n */
    *load = (struct hfm_load){.r = r, .last = r, .client = mine, .settings = settings, .key = key, .rc = DECLINED};
    ap_set_module_config(r->request_config, &holdfast_module, load);
    hf_status status = fetch(load, &value);
    ap_set_module_config(r->request_config, &holdfast_module, NULL); /* an error's document is not part of the load */
    if (load->ran)
        return answer_loaded(load, value);
    return status == HF_OK ? answer_found(load, value) : DECLINED;
}

static int say_status(request_rec *r, hf_client *mine)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    hf_status status = out != NULL ? hf_client_metrics(mine, out) : HF_NOMEM;
    if (out != NULL && fclose(out) != 0)
        status = HF_NOMEM;
    if (status == HF_OK) {
        ap_set_content_type(r, "text/plain; version=0.0.4");
        ap_set_content_length(r, (apr_off_t)size);
        (void)ap_rwrite(text, (int)size, r);
    }
    free(text);
    return status == HF_OK ? OK : HTTP_INTERNAL_SERVER_ERROR;
}

static struct hfm_load *load_of(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &holdfast_module);
}

/* The handler of a load may redirect within the server: what is loaded is then the new request's answer. */
static bool is_of_load(request_rec *r)
{
    struct hfm_load *load = load_of(r);
    bool is_redirected = load == NULL;
    for (const request_rec *before = r->prev; load == NULL && before != NULL; before = before->prev)
        load = load_of(before);
    if (load != NULL && is_redirected)
        hfm_collect_join(load, r);
    return load != NULL;
}

/* mod_rewrite, in a directory: only the new request is looked up, when its own access control has been asked. */
static bool will_redirect(const request_rec *r)
{
    return r->status == HTTP_OK && r->filename != NULL && strncmp(r->filename, "redirect:", 9) == 0;
}

/* Is it what came, or what mod_rewrite has made of that, and not an error's document? */
static bool is_asked_for(const request_rec *r)
{
    const request_rec *before = r->prev;
    while (before != NULL && will_redirect(before))
        before = before->prev;
    return before == NULL;
}

/* HoldfastCache is of the path that came; it may be off where that leads to. */
static const struct hfm_settings *settings_of(request_rec *r)
{
    const request_rec *first = hfm_rules_first(r);
    const struct hfm_settings *settings = ap_get_module_config(first->per_dir_config, &holdfast_module);
    const struct hfm_settings *here = ap_get_module_config(r->per_dir_config, &holdfast_module);
    bool is_off = here->paths != NULL && here->paths->nelts == 0;
    return !is_off && hfm_settings_want(settings, first->uri) ? settings : NULL;
}

static int handle(request_rec *r)
{
    int rc = DECLINED;
    if (r->main != NULL || is_of_load(r))
        return DECLINED;
    apr_table_unset(r->headers_in, HFM_FENCE); /* only a load has one */
    if (will_redirect(r) || !is_asked_for(r))
        return DECLINED;
    const struct hfm_settings *settings = settings_of(r), *here = ap_get_module_config(r->per_dir_config, &holdfast_module);
    atomic_fetch_add(&users, 1);
    hf_client *mine = atomic_load(&client);
    if (mine != NULL && here->status_path != NULL && strcmp(r->uri, here->status_path) == 0)
        rc = say_status(r, mine);
    else if (mine != NULL && settings != NULL)
        rc = answer(r, mine, settings);
    atomic_fetch_sub(&users, 1);
    return rc;
}

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_pre_config(begin_configuration, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_configuration, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(begin_child, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handle, NULL, NULL, APR_HOOK_REALLY_FIRST);
    hfm_collect_register();
}

module AP_MODULE_DECLARE_DATA holdfast_module = {
    STANDARD20_MODULE_STUFF, hfm_settings_new, hfm_settings_merge, NULL, NULL, hfm_directives, register_hooks, 0};
