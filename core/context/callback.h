/* SPDX-License-Identifier: MIT */
/* callback.h - the program's callbacks that this thread is inside: loaders, visits, events. They may nest. Each must
 * return: one that leaves by longjmp, an exception or pthread_exit leaves behind a public call that never ends. */
#ifndef HFI_CALLBACK_H
#define HFI_CALLBACK_H

#include <holdfast/fetch.h>

struct hfi_callback { /* on the stack of the thread that runs the callback */
    const hf_client  *client;
    const hf_loading *loading; /* NULL: not a loader */
    struct hfi_callback *outer;
};

void hfi_callback_begin(struct hfi_callback *callback, const hf_client *client, const hf_loading *loading);
void hfi_callback_end(const struct hfi_callback *callback);
const struct hfi_callback *hfi_callback_innermost(void); /* NULL: in none */
bool hfi_callback_is_inside(const hf_client *client);

#endif
