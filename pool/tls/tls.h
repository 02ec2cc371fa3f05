/* SPDX-License-Identifier: MIT */
/*
 * tls.h - what the library (pool/secure.c) and the module libholdfast-tls (this folder) say to each other.
 *
 * The module is a shared object of its own, opened at the first TLS URI: a program that connects in the clear does not
 * load OpenSSL, which would cost it more than a millisecond at its start. Neither side calls a function of the other by
 * name; the module exports one object, hfi_tls_module.
 */
#ifndef HFI_TLS_H
#define HFI_TLS_H

#include "pool/transport.h"

/* Both sides are built from one tree, or they refuse each other. Count up with any change of what is below. */
#define HFI_TLS_VERSION "holdfast-tls 2"

enum hfi_tls_verify {
    HFI_TLS_FULL, /* the chain, and that the certificate is for the host */
    HFI_TLS_CA,   /* the chain */
    HFI_TLS_NONE
};

struct hfi_tls_settings {
    const char *ca_file;              /* NULL: the system's store */
    const char *cert_file, *key_file; /* NULL: none. cert_file alone: the key is in it too */
    const char *name;                 /* tls_server_name: of every server. NULL: each has its host's name */
    enum hfi_tls_verify verify;
    int min; /* 12 or 13 */
};

struct hfi_tls_context; /* a client's: its files as last read, its last ticket */

struct hfi_tls_module {
    char version[32];
    /* Reads the files. NULL: *why says what is wrong with them, or is empty: no memory. The settings are copied. */
    struct hfi_tls_context *(*open)(const struct hfi_tls_settings *settings, struct hfi_transport_why *why);
    /* Reads the files again if they have changed. False: what they say now cannot be used, so what was in force stays;
     * told once for each change. Any thread. */
    bool (*refresh)(struct hfi_tls_context *context, struct hfi_transport_why *why);
    /* Makes the plain connection to `host` one of TLS; its `start` shakes hands. False: no memory. Any thread. */
    bool (*wrap)(struct hfi_tls_context *context, const char *host, struct hfi_connection *connection);
    void (*free)(struct hfi_tls_context *context); /* after all its connections are closed; NULL is a no-op */
};

extern const struct hfi_tls_module hfi_tls_module;

#endif
