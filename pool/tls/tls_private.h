/* SPDX-License-Identifier: MIT */
/* tls_private.h - what the files of the module share. Nothing but what is in this folder includes OpenSSL. */
#ifndef HFI_TLS_PRIVATE_H
#define HFI_TLS_PRIVATE_H

#include "base/mutex.h"
#include "pool/tls/tls.h"

#include <openssl/ssl.h>
#include <sys/stat.h>
#include <time.h>

/* Which file that was, as far as stat() can tell. */
struct hfi_tls_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

enum { HFI_TLS_CA_FILE, HFI_TLS_CERT_FILE, HFI_TLS_KEY_FILE, HFI_TLS_FILES };

#define HFI_TLS_NAME 256 /* bytes of a name, with its end */

struct hfi_tls_context {
    char *files[HFI_TLS_FILES]; /* NULL: none */
    char *name; /* of every server; NULL: each its host's */
    enum hfi_tls_verify verify;
    int min;

    struct hfi_mutex reading; /* held while the files are looked at and read; guards the next two */
    struct hfi_tls_stamp stamps[HFI_TLS_FILES]; /* when they were looked at last */
    bool is_unread; /* then the system was short of something: they are read again whatever they are */

    struct hfi_mutex mutex; /* guards what is below */
    SSL_CTX *in_force;      /* with the files as they were when they could be used last */
    SSL_SESSION *ticket;    /* the newest one of in_force; NULL: none */
    char ticket_name[HFI_TLS_NAME]; /* whose it is */
};

/* An SSL object is one thread's at a time, and a connection has one thread that sends and one that receives: the
 * mutex is held around each of its calls, and never during a system call. */
struct hfi_tls {
    struct hfi_mutex mutex;
    SSL *ssl;
    BIO *in, *out; /* bytes of the socket, encrypted; the SSL object's */
    struct hfi_tls_context *context;
    char name[HFI_TLS_NAME];      /* whom the certificate has to be for */
    struct hfi_transport_why why; /* under the mutex */

    /* The receiver's. */
    bool is_full; /* there was no room for all that was decrypted */

    /* The sender's. */
    unsigned char *sealed; /* taken from `out`, not yet accepted by the socket */
    size_t from, size, capacity;
    bool held_back; /* the first byte of the next send is in `sealed` already */
};

/* context.c */
/* Makes the SSL object, with all that is checked of the other side. NULL: no memory. */
SSL *hfi_tls_context_ssl(struct hfi_tls_context *context, struct hfi_tls *tls);

/* connection.c */
extern const struct hfi_transport hfi_tls_transport;

/* trouble.c */
/* Says what is in OpenSSL's queue of errors, unless *why says something already, and empties it. */
void hfi_tls_trouble_ssl(struct hfi_transport_why *why);
void hfi_tls_trouble_file(const char *option, const char *file, struct hfi_transport_why *why);
/* OpenSSL's verify callback: notes for `explain` what is wrong with the certificate. */
int hfi_tls_trouble_verdict(int good, X509_STORE_CTX *checked);

#endif
