/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the heap from which kernels allocate. See struct ptx2spv_heap. */
#include "heap.h"

#include "core/base/log.h"
#include "core/memory/memory.h"
#include "core/copy/copy.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define CT_HEAP_UNIT 16
#define CT_HEAP_MIN 4096 /* bytes */
#define CT_HEAP_ALIGN 256

struct ct_heap {
    uint64_t control, memory; /* CUDA addresses: the struct ptx2spv_heap, and the memory that it points to; 0: none */
    _Atomic bool used;
};

static size_t round_size(size_t size_bytes)
{
    const size_t most = (size_t)UINT32_MAX * CT_HEAP_UNIT;

    if (size_bytes < CT_HEAP_MIN)
        return CT_HEAP_MIN;
    return size_bytes > most ? most : (size_bytes + CT_HEAP_UNIT - 1) / CT_HEAP_UNIT * CT_HEAP_UNIT;
}

static void free_memory(struct ct_context *context, uint64_t address)
{
    if (address)
        ct_memory_free(context, address, CT_RANGE_MODULE);
}

/* Allocates new memory for the heap, which is empty, since its header is zero. */
static CUresult make_memory(struct ct_context *context, struct ct_heap *heap, size_t size_bytes)
{
    static const unsigned char zeros[PTX2SPV_HEAP_HEADER_BYTES];
    struct ptx2spv_heap control = {.units = size_bytes / CT_HEAP_UNIT};
    CUresult r = ct_memory_alloc(context, sizeof zeros + size_bytes, CT_HEAP_ALIGN, CT_RANGE_MODULE, &control.heap);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_copy_to_device(context, control.heap, zeros, sizeof zeros);
    if (r == CUDA_SUCCESS)
        r = ct_copy_to_device(context, heap->control, &control, sizeof control);
    if (r != CUDA_SUCCESS) {
        free_memory(context, control.heap);
        return r;
    }
    free_memory(context, heap->memory);
    heap->memory = control.heap;
    return CUDA_SUCCESS;
}

static void destroy(struct ct_context *context, struct ct_heap *heap)
{
    free_memory(context, heap->memory);
    free_memory(context, heap->control);
    free(heap);
}

static CUresult make(struct ct_context *context, struct ct_heap **out)
{
    struct ct_heap *heap = calloc(1, sizeof *heap);
    size_t size_bytes;
    CUresult r;

    if (!heap)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the heap of kernels");
    ct_mutex_lock(&context->lock);
    size_bytes = round_size(context->limits[CU_LIMIT_MALLOC_HEAP_SIZE]);
    ct_mutex_unlock(&context->lock);
    r = ct_memory_alloc(context, sizeof(struct ptx2spv_heap), CT_HEAP_ALIGN, CT_RANGE_MODULE, &heap->control);
    if (r == CUDA_SUCCESS)
        r = make_memory(context, heap, size_bytes);
    if (r == CUDA_SUCCESS)
        *out = heap;
    else
        destroy(context, heap);
    return r;
}

CUresult ct_heap_prepare(struct ct_context *context, uint64_t *out_address)
{
    struct ct_heap *heap = atomic_load_explicit(&context->heap, memory_order_acquire), *none = NULL; /* pairs with the exchange below */
    CUresult r;

    if (!heap) {
        if ((r = make(context, &heap)) != CUDA_SUCCESS)
            return r;
        if (!atomic_compare_exchange_strong(&context->heap, &none, heap)) { /* another thread has created it meanwhile */
            destroy(context, heap);
            heap = none;
        }
    }
    *out_address = heap->control;
    return CUDA_SUCCESS;
}

void ct_heap_note_launch(struct ct_context *context)
{
    struct ct_heap *heap = atomic_load_explicit(&context->heap, memory_order_acquire);

    if (heap)
        /* only the launching thread itself can rely on it when it resizes */
        atomic_store_explicit(&heap->used, true, memory_order_relaxed);
}

CUresult ct_heap_resize(struct ct_context *context, size_t *size_bytes)
{
    struct ct_heap *heap = atomic_load_explicit(&context->heap, memory_order_acquire);

    *size_bytes = round_size(*size_bytes);
    if (!heap)
        return CUDA_SUCCESS;
    if (atomic_load_explicit(&heap->used, memory_order_relaxed))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the size of the heap cannot be changed after a kernel that uses malloc was launched");
    return make_memory(context, heap, *size_bytes);
}

void ct_heap_destroy(struct ct_context *context)
{
    struct ct_heap *heap = atomic_exchange(&context->heap, NULL);

    if (heap)
        destroy(context, heap);
}
