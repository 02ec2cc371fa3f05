/* SPDX-License-Identifier: MIT */
/* context.c - a client's side of TLS: its files, read again when they have changed, the newest ticket for resumption,
 * and what is asked of the other side's certificate. */
#include "pool/tls/tls_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const options[HFI_TLS_FILES] = {"tls_ca_file", "tls_cert_file", "tls_key_file"};

/* OpenSSL's own one would ask at the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
    (void)buffer, (void)size, (void)writing, (void)arg;
    return 0;
}

/* Keeps a copy: the session itself ends as unusable with a connection that breaks. */
static int keep_ticket(SSL *ssl, SSL_SESSION *ticket)
{
    SSL_CTX *made_by = SSL_get_SSL_CTX(ssl);
    struct hfi_tls_context *context = SSL_CTX_get_app_data(made_by);
    const struct hfi_tls *tls = SSL_get_app_data(ssl);
    SSL_SESSION *dropped = SSL_SESSION_dup(ticket);
    hfi_mutex_lock(&context->mutex);
    if (dropped != NULL && context->in_force == made_by) {
        SSL_SESSION *kept = dropped;
        dropped = context->ticket;
        context->ticket = kept;
        memcpy(context->ticket_name, tls->name, sizeof tls->name);
    }
    hfi_mutex_unlock(&context->mutex);
    SSL_SESSION_free(dropped);
    return 0;
}

/* NULL: *why is set, or empty if there is no memory; errno is that of the last call that failed, if any did. */
static SSL_CTX *read_files(struct hfi_tls_context *context, struct hfi_transport_why *why)
{
    const char *ca = context->files[HFI_TLS_CA_FILE], *cert = context->files[HFI_TLS_CERT_FILE];
    const char *key = context->files[HFI_TLS_KEY_FILE] != NULL ? context->files[HFI_TLS_KEY_FILE] : cert;
    int wrong = -1;
    *why = (struct hfi_transport_why){0};
    ERR_clear_error();
    SSL_CTX *made = SSL_CTX_new(TLS_client_method());
    if (made == NULL) {
        hfi_tls_trouble_ssl(why);
        return NULL;
    }
    (void)SSL_CTX_set_min_proto_version(made, context->min == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    (void)SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(made, keep_ticket);
    SSL_CTX_set_default_passwd_cb(made, no_passphrase);
    (void)SSL_CTX_set_app_data(made, context);
    if (ca != NULL ? SSL_CTX_load_verify_file(made, ca) != 1 : SSL_CTX_set_default_verify_paths(made) != 1)
        wrong = HFI_TLS_CA_FILE;
    else if (cert != NULL && SSL_CTX_use_certificate_chain_file(made, cert) != 1)
        wrong = HFI_TLS_CERT_FILE;
    else if (cert != NULL && (SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) != 1 ||
                              SSL_CTX_check_private_key(made) != 1))
        wrong = HFI_TLS_KEY_FILE;
    if (wrong < 0)
        return made;
    int failed = errno;
    hfi_tls_trouble_file(options[wrong], wrong == HFI_TLS_KEY_FILE ? key : context->files[wrong], why);
    SSL_CTX_free(made);
    errno = failed;
    return NULL;
}

static bool is_same(const struct hfi_tls_stamp *a, const struct hfi_tls_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Returns whether a file is another one than when it was looked at last. */
static bool look_at_files(struct hfi_tls_context *context)
{
    bool changed = false;
    for (int i = 0; i < HFI_TLS_FILES; i++) {
        struct hfi_tls_stamp now = {0};
        struct stat file;
        if (context->files[i] != NULL && stat(context->files[i], &file) == 0)
            now = (struct hfi_tls_stamp){file.st_dev, file.st_ino, file.st_size, file.st_mtim};
        changed = changed || !is_same(&now, &context->stamps[i]);
        context->stamps[i] = now;
    }
    return changed;
}

static bool refresh(struct hfi_tls_context *context, struct hfi_transport_why *why)
{
    *why = (struct hfi_transport_why){0};
    hfi_mutex_lock(&context->reading);
    bool changed = look_at_files(context) || context->is_unread;
    errno = 0;
    SSL_CTX *made = changed ? read_files(context, why) : NULL, *before = NULL;
    context->is_unread = changed && made == NULL && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (made != NULL) {
        hfi_mutex_lock(&context->mutex);
        SSL_SESSION *ticket = context->ticket;
        before = context->in_force;
        context->in_force = made;
        context->ticket = NULL;
        hfi_mutex_unlock(&context->mutex);
        SSL_SESSION_free(ticket);
    }
    hfi_mutex_unlock(&context->reading);
    SSL_CTX_free(before); /* connections made by it keep it */
    return !changed || made != NULL;
}

static void free_context(struct hfi_tls_context *context)
{
    if (context == NULL)
        return;
    for (int i = 0; i < HFI_TLS_FILES; i++)
        free(context->files[i]);
    free(context->name);
    SSL_SESSION_free(context->ticket);
    SSL_CTX_free(context->in_force);
    hfi_mutex_destroy(&context->reading);
    hfi_mutex_destroy(&context->mutex);
    free(context);
}

static bool copy(char **to, const char *from)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static struct hfi_tls_context *open_context(const struct hfi_tls_settings *settings, struct hfi_transport_why *why)
{
    *why = (struct hfi_transport_why){0};
    /* Threads of ours may still run while the program exits: what they use stays. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return NULL;
    struct hfi_tls_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    hfi_mutex_init(&context->reading, HFI_RANK_INNER);
    hfi_mutex_init(&context->mutex, HFI_RANK_LEAF);
    context->verify = settings->verify;
    context->min = settings->min;
    if (copy(&context->files[HFI_TLS_CA_FILE], settings->ca_file) &&
        copy(&context->files[HFI_TLS_CERT_FILE], settings->cert_file) &&
        copy(&context->files[HFI_TLS_KEY_FILE], settings->key_file) && copy(&context->name, settings->name)) {
        (void)look_at_files(context);
        context->in_force = read_files(context, why);
    }
    if (context->in_force != NULL)
        return context;
    free_context(context);
    return NULL;
}

/* An address is compared with the addresses in the certificate, and is no name to ask for (SNI). */
static bool ask_for_name(SSL *ssl, const char *name, bool is_checked)
{
    X509_VERIFY_PARAM *asked = SSL_get0_param(ssl);
    char address[64] = "";
    size_t size = strcspn(name, "%"); /* of IPv6, the zone is ours alone */
    if (size < sizeof address)
        memcpy(address, name, size);
    ASN1_OCTET_STRING *octets = a2i_IPADDRESS(address);
    bool is_address = octets != NULL;
    ASN1_OCTET_STRING_free(octets);
    ERR_clear_error();
    if (!is_address && SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    if (!is_checked)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return is_address ? X509_VERIFY_PARAM_set1_ip_asc(asked, address) == 1 : SSL_set1_host(ssl, name) == 1;
}

SSL *hfi_tls_context_ssl(struct hfi_tls_context *context, struct hfi_tls *tls)
{
    hfi_mutex_lock(&context->mutex);
    SSL *ssl = SSL_new(context->in_force);
    /* A copy: OpenSSL offers a ticket of TLS 1.3 once, and six connections may be made at a time. */
    bool resumes = ssl != NULL && context->ticket != NULL && strcmp(context->ticket_name, tls->name) == 0;
    SSL_SESSION *ticket = resumes ? SSL_SESSION_dup(context->ticket) : NULL;
    hfi_mutex_unlock(&context->mutex);
    if (ticket != NULL)
        (void)SSL_set_session(ssl, ticket);
    SSL_SESSION_free(ticket);
    if (ssl == NULL)
        return NULL;
    (void)SSL_set_app_data(ssl, tls);
    SSL_set_verify(ssl, context->verify == HFI_TLS_NONE ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, hfi_tls_trouble_verdict);
    SSL_set_connect_state(ssl);
    if (ask_for_name(ssl, tls->name, context->verify == HFI_TLS_FULL))
        return ssl;
    SSL_free(ssl);
    return NULL;
}

static bool wrap(struct hfi_tls_context *context, const char *host, struct hfi_connection *connection)
{
    struct hfi_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL)
        return false;
    hfi_mutex_init(&tls->mutex, HFI_RANK_INNER);
    tls->context = context;
    (void)snprintf(tls->name, sizeof tls->name, "%s", context->name != NULL ? context->name : host);
    ERR_clear_error();
    tls->ssl = hfi_tls_context_ssl(context, tls);
    tls->in = tls->ssl != NULL ? BIO_new(BIO_s_mem()) : NULL;
    tls->out = tls->in != NULL ? BIO_new(BIO_s_mem()) : NULL;
    if (tls->out == NULL) {
        (void)BIO_free(tls->in);
        SSL_free(tls->ssl);
        hfi_mutex_destroy(&tls->mutex);
        free(tls);
        ERR_clear_error();
        return false;
    }
    (void)BIO_set_mem_eof_return(tls->in, -1); /* no bytes yet: not the end */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    connection->tls = tls;
    connection->transport = &hfi_tls_transport;
    return true;
}

__attribute__((visibility("default"))) const struct hfi_tls_module hfi_tls_module = {
    HFI_TLS_VERSION, open_context, refresh, wrap, free_context};
