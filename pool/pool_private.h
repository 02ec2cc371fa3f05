/* SPDX-License-Identifier: MIT */
/* pool_private.h - struct hfi_pool, which pool.c makes and ends. borrow.c looks into it for the calls of
 * borrow.h. */
#ifndef HFI_POOL_PRIVATE_H
#define HFI_POOL_PRIVATE_H

#include "pool/deployment.h"

struct hfi_borrowers;
struct hfi_listener;
struct hfi_node;

struct hfi_pool {
    struct hfi_deployment deployment;
    struct hfi_listener *listener;
    struct hfi_node *node; /* of one primary there is one */
    struct hfi_borrowers *borrowers;
};

#endif
