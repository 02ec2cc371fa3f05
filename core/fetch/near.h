/* SPDX-License-Identifier: MIT */
/* near.h - values given out from this process's memory: what the server is asked to tell of their changes, and the questions
 * that prove that it does. Around near_proof.h; the values themselves are in local.h. */
#ifndef HFI_NEAR_H
#define HFI_NEAR_H

#include "core/fetch/local.h"

bool hfi_near_open(hf_client *client, int lanes, int64_t lag_ms); /* false: no memory */
void hfi_near_free(hf_client *client);

/* The value, if it may be given out; else seen->body is NULL. Whoever asks makes the proofs go on for a while. */
void hfi_near_look(hf_client *client, const struct hfi_name *key, int64_t near_ms, int64_t now, struct hfi_seen *seen);

struct hfi_near_reading { /* of one value that is to be near */
    uint64_t epoch;       /* 0: it is read without being tracked */
    uint64_t changes;
    int64_t  stamp_ns;
};
/* Of a value that is read as ever: so that what is known of one that is near can be renewed by it. */
void hfi_near_note(hf_client *client, const struct hfi_name *key, int64_t now, struct hfi_near_reading *reading);
/* Before the read is listed on that lane. */
void hfi_near_begin(hf_client *client, const struct hfi_name *key, struct hfi_lane *lane, struct hfi_near_reading *reading);
/* Its answer came on that connection of the lane; tracked: the server says so. False: what was read must not be kept near. */
bool hfi_near_end(hf_client *client, const struct hfi_name *key, const struct hfi_near_reading *reading, uint32_t connection,
                  bool tracked);
/* How long nothing has to be asked anew, of what one call has read for another (N5). */
int64_t hfi_near_lag_ms(const hf_client *client);

/* Of struct hfi_pool_ops. */
void hfi_near_proved(void *self, int64_t tracker, uint64_t run, int64_t stamp_ns);
void hfi_near_told(hf_client *client, const char *key, size_t size); /* NULL: any key may have changed */

const char *hfi_near_text(const hf_client *client); /* for people: whether that goes on */
bool hfi_near_is_refused(const hf_client *client);  /* for good: nothing is near */

#endif
