/* SPDX-License-Identifier: MIT */
/* buffer.h - bytes appended at the end and consumed at the front. One thread at a time. */
#ifndef HFI_BUFFER_H
#define HFI_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct hfi_buffer {
    char  *bytes;
    size_t start, end, capacity; /* [start, end) is content */
};

static inline size_t hfi_buffer_size(const struct hfi_buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline const char *hfi_buffer_data(const struct hfi_buffer *buffer)
{
    return buffer->bytes + buffer->start;
}

void hfi_buffer_done(struct hfi_buffer *buffer); /* frees, zeroes */
bool hfi_buffer_append(struct hfi_buffer *buffer, const void *bytes, size_t size); /* false: no memory, unchanged */
bool hfi_buffer_print(struct hfi_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `size` more bytes: until they are used up, appending does not move the content. Returns the place of
 * the next byte; NULL: no memory. */
char *hfi_buffer_reserve(struct hfi_buffer *buffer, size_t size);
void  hfi_buffer_eat(struct hfi_buffer *buffer, size_t size); /* drops from the front */

#endif
