/* SPDX-License-Identifier: MIT */
/* heap.c - malloc for a program of one thread that runs in short batches: a free list per size, nothing is split or
 * joined, no lock is taken. A sanitized build keeps the sanitizer's own malloc. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STEP       16
#define SMALL_MOST 1024
#define CLASSES    (SMALL_MOST / STEP + 48) /* above the small ones: powers of two */
#define REGION     ((size_t)4 << 20)

struct block {
    size_t kind; /* its class; while it is free as well */
    union {
        struct block *next;
        max_align_t align;
    } at;
};
#define HEAD offsetof(struct block, at)

static struct block *spare[CLASSES];
static char *region;
static size_t region_left;

static size_t kind_of(size_t size, size_t *room)
{
    size_t kind = (size + STEP - 1) / STEP;
    *room = kind * STEP;
    if (size <= SMALL_MOST)
        return kind;
    kind = SMALL_MOST / STEP;
    for (*room = SMALL_MOST; *room < size; *room *= 2)
        kind++;
    return kind;
}

static size_t room_of(size_t kind)
{
    return kind <= SMALL_MOST / STEP ? kind * STEP : (size_t)SMALL_MOST << (kind - SMALL_MOST / STEP);
}

static void *cut(size_t size)
{
    if (size > region_left) {
        size_t more = size > REGION ? size : REGION;
        char *new = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (new == MAP_FAILED)
            return NULL;
        region = new;
        region_left = more;
    }
    void *bytes = region;
    region += size;
    region_left -= size;
    return bytes;
}

void *malloc(size_t size)
{
    size_t room, kind = size > (size_t)1 << 40 ? CLASSES : kind_of(size == 0 ? 1 : size, &room);
    struct block *block = kind < CLASSES ? spare[kind] : NULL;
    if (block != NULL) {
        spare[kind] = block->at.next;
        return &block->at;
    }
    block = kind < CLASSES ? cut(HEAD + room) : NULL;
    if (block == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    block->kind = kind;
    return &block->at;
}

void free(void *bytes)
{
    if (bytes == NULL)
        return;
    struct block *block = (struct block *)(void *)((char *)bytes - HEAD);
    if (block->kind == CLASSES)
        return;
    block->at.next = spare[block->kind];
    spare[block->kind] = block;
}

void *calloc(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *bytes = malloc(total);
    return bytes != NULL ? memset(bytes, 0, total) : NULL;
}

void *realloc(void *bytes, size_t size)
{
    if (bytes == NULL)
        return malloc(size);
    size_t room = room_of(((struct block *)(void *)((char *)bytes - HEAD))->kind);
    if (size <= room)
        return bytes;
    void *more = malloc(size);
    if (more == NULL)
        return NULL;
    memcpy(more, bytes, room);
    free(bytes);
    return more;
}

/* With more than malloc's own alignment it is of no class: nobody has it again, and realloc does not take it. */
static void *cut_aligned(size_t alignment, size_t size)
{
    char *bytes = cut(HEAD + alignment + (size + STEP - 1) / STEP * STEP);
    if (bytes == NULL)
        return NULL;
    bytes += HEAD;
    bytes += (alignment - (uintptr_t)bytes % alignment) % alignment;
    ((struct block *)(void *)(bytes - HEAD))->kind = CLASSES;
    return bytes;
}

int posix_memalign(void **bytes, size_t alignment, size_t size)
{
    *bytes = alignment <= STEP ? malloc(size) : cut_aligned(alignment, size);
    return *bytes != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return alignment <= STEP ? malloc(size) : cut_aligned(alignment, size);
}
