/* SPDX-License-Identifier: MIT */
/* parser.c - see parser.h. hiredis allocates memory for all elements of an array as soon as it has read their count, so
 * ten bytes from a server could cost gigabytes. */
#include "pool/parser.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if HIREDIS_MAJOR >= 1
typedef size_t count_type;
#else
typedef int count_type;
#endif

#define LEAST_ELEMENT 4 /* bytes: ":1\r\n" */

/* hiredis's own functions, but for arrays: made once, and never freed. A mutex could be another thread's as the process forks. */
static _Atomic(redisReplyObjectFunctions *) bounded;
static _Atomic(void *(*)(const redisReadTask *, count_type)) create_array;

static void *create_bounded_array(const redisReadTask *task, count_type count)
{
    if ((size_t)count > (uintptr_t)task->privdata / LEAST_ELEMENT)
        return NULL; /* hiredis takes it for no memory. The reader is broken from then on */
    return atomic_load(&create_array)(task, count);
}

/* NULL: no memory. */
static redisReplyObjectFunctions *make(void)
{
    redisReplyObjectFunctions *made = malloc(sizeof *made), *first = NULL;
    redisReader *reader = made != NULL ? redisReaderCreate() : NULL;
    if (reader == NULL) {
        free(made);
        return NULL;
    }
    *made = *reader->fn;
    redisReaderFree(reader);
    atomic_store(&create_array, made->createArray);
    made->createArray = create_bounded_array;
    if (atomic_compare_exchange_strong(&bounded, &first, made))
        return made;
    free(made);
    return first;
}

struct redisReader *hfi_parser_create(size_t reply_most)
{
    redisReplyObjectFunctions *functions = atomic_load(&bounded);
    if (functions == NULL)
        functions = make();
    redisReader *reader = functions != NULL ? redisReaderCreateWithFunctions(functions) : NULL;
    if (reader != NULL)
        reader->privdata = (void *)(uintptr_t)reply_most; /* NOLINT: a number, not an address */
    return reader;
}
