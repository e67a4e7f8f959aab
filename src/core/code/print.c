/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of device-side printf: creating it, and reading its records. See struct ptx2spv_print_ring. */
#include "print.h"

#include "assertion.h"
#include "core/backing/address_history.h"
#include "core/memory/host_memory.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "print"
#define CT_PRINT_MIN 4096           /* bytes of a ring */
#define CT_PRINT_MAX (1u << 30)     /* so that positions modulo 2^32 stay unambiguous */
#define CT_PRINT_RECORD_MAX 1048576 /* words of one record; longer ones are truncated */

struct ct_print {
    struct ptx2spv_print_ring *ring; /* kernels write `head` */
    uint64_t *words;
    uint64_t ring_address;
    _Atomic bool used;
    struct ct_mutex lock; /* guards the following members: one thread at a time reads records */
    uint32_t tail;        /* the position of the next record to be read */
};

/* Allocates page-locked memory with its CUDA address. */
static CUresult make_memory(struct ct_context *context, size_t size_bytes, void **out, uint64_t *out_address)
{
    struct ct_range range;
    CUresult r = ct_host_memory_alloc(context, size_bytes, CU_MEMHOSTALLOC_DEVICEMAP, out);

    if (r == CUDA_SUCCESS && (r = ct_host_memory_find(*out, &range)) == CUDA_SUCCESS) {
        *out_address = range.device_pointer;
        ct_history_hide(range.start);
        memset(*out, 0, size_bytes);
    }
    return r;
}

static size_t round_size(size_t size_bytes)
{
    size_t rounded = CT_PRINT_MIN;

    while (rounded < size_bytes && rounded < CT_PRINT_MAX)
        rounded *= 2;
    return rounded;
}

static CUresult make_words(struct ct_context *context, struct ct_print *print, size_t size_bytes)
{
    void *words, *old = print->words;
    uint64_t address;
    CUresult r = make_memory(context, size_bytes, &words, &address);

    if (r != CUDA_SUCCESS)
        return r;
    print->words = words;
    print->ring->words = address;
    print->ring->mask = (uint32_t)(size_bytes / sizeof(uint64_t) - 1);
    return ct_host_memory_free(context, old);
}

static void destroy(struct ct_context *context, struct ct_print *print)
{
    ct_host_memory_free(context, print->words);
    ct_host_memory_free(context, print->ring);
    ct_mutex_finish(&print->lock);
    free(print);
}

static CUresult make(struct ct_context *context, struct ct_print **out)
{
    struct ct_print *print = calloc(1, sizeof *print);
    size_t size_bytes;
    void *ring = NULL;
    CUresult r;

    if (!print)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the buffer of printf");
    ct_mutex_init(&print->lock, CT_RANK_PRINT);
    ct_mutex_lock(&context->lock);
    size_bytes = round_size(context->limits[CU_LIMIT_PRINTF_FIFO_SIZE]);
    ct_mutex_unlock(&context->lock);
    r = make_memory(context, sizeof *print->ring, &ring, &print->ring_address);
    print->ring = ring;
    if (r == CUDA_SUCCESS)
        r = make_words(context, print, size_bytes);
    if (r == CUDA_SUCCESS)
        *out = print;
    else
        destroy(context, print);
    return r;
}

void ct_print_note_launch(struct ct_context *context)
{
    struct ct_print *print = atomic_load_explicit(&context->print, memory_order_acquire);

    if (print)
        /* only the launching thread itself can rely on it when it resizes */
        atomic_store_explicit(&print->used, true, memory_order_relaxed);
}

CUresult ct_print_resize(struct ct_context *context, size_t *size_bytes)
{
    struct ct_print *print = atomic_load_explicit(&context->print, memory_order_acquire);

    *size_bytes = round_size(*size_bytes);
    if (!print)
        return CUDA_SUCCESS;
    if (atomic_load_explicit(&print->used, memory_order_relaxed))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the size of the printf buffer cannot be changed after a kernel that prints was launched");
    return make_words(context, print, *size_bytes);
}

/* Copies the record at the tail out of the ring without its first word, which is stored in *out_header. False: no complete record is
 * left. */
static bool read_record_locked(struct ct_print *print, uint64_t *record, uint32_t *out_header, bool *lost)
{
    const uint32_t mask = print->ring->mask;

    for (;;) {
        uint32_t head = atomic_load_explicit((_Atomic uint32_t *)&print->ring->head, memory_order_acquire); /* kernels add to it */
        uint64_t header;
        unsigned n;

        if (head == print->tail)
            return false;
        if (head - print->tail > mask + 1) { /* the records at the tail have been overwritten */
            print->tail = head - (mask + 1);
            *lost = true;
        }
        /* pairs with the kernel's fence before it writes the header */
        header = atomic_load_explicit((_Atomic uint64_t *)&print->words[print->tail & mask], memory_order_acquire);
        n = (uint32_t)header & ~PTX2SPV_PRINT_ASSERTION;
        if (header >> 32 == (uint32_t)(print->tail + 1) && n > 0 && n <= mask) {
            unsigned copied = n - 1 < CT_PRINT_RECORD_MAX ? n - 1 : CT_PRINT_RECORD_MAX;

            for (unsigned i = 0; i < copied; i++)
                record[i] = print->words[(print->tail + 1 + i) & mask];
            print->tail += n;
            *lost = false;
            *out_header = (copied + 1) | ((uint32_t)header & PTX2SPV_PRINT_ASSERTION);
            return true;
        }
        if (!*lost)
            return false;
        print->tail++; /* the middle of a record whose beginning was overwritten */
    }
}

void ct_print_flush(struct ct_context *context)
{
    struct ct_print *print = atomic_load_explicit(&context->print, memory_order_acquire);
    struct ct_assertions assertions = {0};
    uint64_t *record;
    bool lost = false, warned = false;
    uint32_t header;

    if (!print || atomic_load_explicit((_Atomic uint32_t *)&print->ring->head, memory_order_relaxed) == 0)
        return;
    record = malloc(sizeof *record * (print->ring->mask < CT_PRINT_RECORD_MAX ? print->ring->mask : CT_PRINT_RECORD_MAX));
    if (!record)
        return; /* another time */
    ct_mutex_lock(&print->lock);
    while (read_record_locked(print, record, &header, &lost)) {
        if (header & PTX2SPV_PRINT_ASSERTION)
            ct_assertions_add(&assertions, record, (header & ~PTX2SPV_PRINT_ASSERTION) - 1);
        else
            ct_print_record(record, header - 1, stdout);
        warned |= lost;
    }
    ct_mutex_unlock(&print->lock);
    free(record);
    ct_assertions_print(&assertions, context, stderr); /* reads the context's modules */
    if (warned)
        ct_log(CT_LOG_WARN, "kernels printed more than CU_LIMIT_PRINTF_FIFO_SIZE bytes: the oldest output is lost");
}

CUresult ct_print_prepare(struct ct_context *context, uint64_t *out_address)
{
    struct ct_print *print = atomic_load_explicit(&context->print, memory_order_acquire), *none = NULL; /* pairs with the exchange below */
    CUresult r;

    if (!print) {
        if ((r = make(context, &print)) != CUDA_SUCCESS)
            return r;
        atomic_store_explicit(&context->flush_prints, ct_print_flush, memory_order_release); /* pairs with ct_context_check */
        if (!atomic_compare_exchange_strong(&context->print, &none, print)) {                /* another thread has created it meanwhile */
            destroy(context, print);
            print = none;
        }
    }
    *out_address = print->ring_address;
    return CUDA_SUCCESS;
}

void ct_print_destroy(struct ct_context *context)
{
    struct ct_print *print = atomic_exchange(&context->print, NULL);

    if (print)
        destroy(context, print);
}
