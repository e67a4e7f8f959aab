/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of CUDA pointers (Driver API: Unified Addressing). The table has a row per attribute: the size of its type, its getter and
 * its value for memory that CUDA does not know. */
#include "pointer.h"

#include "core/memory/host_memory.h"
#include "core/base/log.h"
#include "core/memory/memory.h"
#include "core/pool/memory_pool.h"
#include "core/base/process.h"
#include "core/vmm/vmm.h"

#include <string.h>

#define CT_CHANNEL "memory"

/* An attribute's value; the size in the attribute's row determines which member is valid. */
union value {
    unsigned int u32;
    int i32;
    unsigned long long u64;
    void *pointer;
};

/* The input of a getter. */
struct query {
    const struct ct_context *context; /* the current one, or NULL */
    const struct ct_range *range;
    const struct ct_vmm_mapping_info *mapping; /* the mapping at the pointer: the whole range, except in reserved addresses */
    uint64_t pointer;
};

static bool is_host(const struct ct_range *range)
{
    return range->kind == CT_RANGE_HOST || range->kind == CT_RANGE_POOL_HOST || range->kind == CT_RANGE_REGISTERED;
}

static bool is_for_all_devices(const struct ct_range *range)
{
    return is_host(range) || ct_range_is_managed(range);
}

static CUresult get_context(const struct query *q, union value *out)
{
    out->pointer = ct_range_is_of_pool(q->range) ? NULL : q->range->owner; /* pools belong to devices */
    return CUDA_SUCCESS;
}

static CUresult get_memory_type(const struct query *q, union value *out)
{
    out->u32 = is_host(q->range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult get_device_pointer(const struct query *q, union value *out)
{
    uint64_t start = q->range->device_pointer;

    if (!q->context)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "the device pointer of 0x%llx needs a current context", (unsigned long long)q->pointer);
    if (q->mapping->access == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
        (q->range->kind == CT_RANGE_POOL_HOST && !ct_memory_pool_is_accessible(q->range->pool, q->context->device)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no device has access to 0x%llx", (unsigned long long)q->pointer);
    if (is_for_all_devices(q->range) && !ct_host_memory_reach(q->context->device, q->range, &start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "device %d cannot access 0x%llx", q->context->device->ordinal,
                       (unsigned long long)q->pointer);
    out->u64 = start + (q->pointer - q->range->start);
    return CUDA_SUCCESS;
}

static CUresult get_host_pointer(const struct query *q, union value *out)
{
    if (!is_for_all_devices(q->range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "device memory at 0x%llx has no host pointer", (unsigned long long)q->pointer);
    out->pointer = (char *)q->range->host + (q->pointer - q->range->start);
    return CUDA_SUCCESS;
}

static CUresult get_synchronous(const struct query *q, union value *out)
{
    out->u32 = q->range->synchronous;
    return CUDA_SUCCESS;
}

static CUresult get_id(const struct query *q, union value *out)
{
    out->u64 = q->range->id;
    return CUDA_SUCCESS;
}

static CUresult get_managed(const struct query *q, union value *out)
{
    out->u32 = ct_range_is_managed(q->range);
    return CUDA_SUCCESS;
}

static CUresult get_pool(const struct query *q, union value *out)
{
    out->pointer = q->range->pool;
    return CUDA_SUCCESS;
}

static CUresult get_no(const struct query *q, union value *out)
{
    (void)q;
    out->u64 = 0;
    return CUDA_SUCCESS;
}

static CUresult get_ordinal(const struct query *q, union value *out)
{
    out->i32 = q->mapping->device;
    return CUDA_SUCCESS;
}

static CUresult get_start(const struct query *q, union value *out)
{
    out->u64 = q->range->start;
    return CUDA_SUCCESS;
}

static CUresult get_size(const struct query *q, union value *out)
{
    out->u64 = q->range->size_bytes;
    return CUDA_SUCCESS;
}

static CUresult get_mapping_start(const struct query *q, union value *out)
{
    out->u64 = q->mapping->start;
    return CUDA_SUCCESS;
}

static CUresult get_mapping_size(const struct query *q, union value *out)
{
    out->u64 = q->mapping->size_bytes;
    return CUDA_SUCCESS;
}

static CUresult get_mapped(const struct query *q, union value *out)
{
    out->u32 = q->mapping->size_bytes != 0;
    return CUDA_SUCCESS;
}

static CUresult get_block_id(const struct query *q, union value *out)
{
    out->u64 = q->mapping->block_id;
    return CUDA_SUCCESS;
}

static CUresult get_handle_types(const struct query *q, union value *out)
{
    out->u64 = q->mapping->handle_types;
    return CUDA_SUCCESS;
}

/* Whether cuIpcGetMemHandle accepts the memory. */
static CUresult get_ipc_capable(const struct query *q, union value *out)
{
    const struct ct_range *range = q->range;

    out->u32 = range->kind == CT_RANGE_DEVICE && !range->imported && ct_process.devices[range->device].info.memory_fd;
    return CUDA_SUCCESS;
}

/* Every device can access its own memory, and the host memory that it can map. */
static bool has_access(const struct query *q)
{
    uint64_t start;

    return !q->context || q->mapping->device == q->context->device->ordinal ||
           (is_for_all_devices(q->range) && ct_host_memory_reach(q->context->device, q->range, &start));
}

static CUresult get_access(const struct query *q, union value *out)
{
    const bool has = has_access(q);

    if (has && q->mapping->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        out->u32 = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    else
        out->u32 = has && q->mapping->access == CU_MEM_ACCESS_FLAGS_PROT_READ ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                                                              : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    return CUDA_SUCCESS;
}

/* Whether cuMemBatchDecompressAsync accepts the memory as a destination: the host decompresses into whatever a device may write. */
static CUresult get_decompress_capable(const struct query *q, union value *out)
{
    out->u32 = q->mapping->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult get_tokens(const struct query *q, union value *out)
{
    (void)out;
    if (is_host(q->range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in device memory", (unsigned long long)q->pointer);
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "peer-to-peer tokens for 0x%llx, which other kernel modules would use",
                   (unsigned long long)q->pointer);
}

struct row {
    size_t size_bytes; /* 0: no such attribute */
    CUresult (*get)(const struct query *query, union value *out);
    union value unknown;
};

static const struct row rows[] = {
    [CU_POINTER_ATTRIBUTE_CONTEXT] = {sizeof(CUcontext), get_context, {.pointer = NULL}},
    [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = {sizeof(unsigned), get_memory_type, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = {sizeof(CUdeviceptr), get_device_pointer, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_HOST_POINTER] = {sizeof(void *), get_host_pointer, {.pointer = NULL}},
    [CU_POINTER_ATTRIBUTE_P2P_TOKENS] = {sizeof(unsigned long long), get_tokens, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = {sizeof(unsigned), get_synchronous, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_BUFFER_ID] = {sizeof(unsigned long long), get_id, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_IS_MANAGED] = {sizeof(unsigned), get_managed, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = {sizeof(int), get_ordinal, {.i32 = CU_DEVICE_INVALID}},
    [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = {sizeof(unsigned), get_ipc_capable, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = {sizeof(CUdeviceptr), get_start, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = {sizeof(size_t), get_size, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_MAPPED] = {sizeof(unsigned), get_mapped, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = {sizeof(unsigned long long), get_handle_types, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = {sizeof(unsigned), get_no, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = {sizeof(unsigned), get_access, {.u32 = 0}},
    [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = {sizeof(CUmemoryPool), get_pool, {.pointer = NULL}},
    [CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = {sizeof(size_t), get_mapping_size, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = {sizeof(CUdeviceptr), get_mapping_start, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = {sizeof(unsigned long long), get_block_id, {.u64 = 0}},
    [CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE] = {sizeof(unsigned), get_decompress_capable, {.u32 = 0}},
};

static CUresult find_row(CUpointer_attribute attribute, const struct row **out)
{
    if ((size_t)attribute >= sizeof rows / sizeof *rows || !rows[attribute].get)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no pointer attribute %d", (int)attribute);
    *out = &rows[attribute];
    return CUDA_SUCCESS;
}

/* Addresses that are reserved but not mapped have only these attributes. */
static bool is_of_reservation(CUpointer_attribute attribute)
{
    return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
           attribute == CU_POINTER_ATTRIBUTE_MAPPED;
}

static CUresult find_mapping(CUpointer_attribute attribute, const struct ct_range *range, uint64_t pointer, struct ct_vmm_mapping_info *out)
{
    CUresult r;

    if (range->kind != CT_RANGE_VIRTUAL) {
        *out = (struct ct_vmm_mapping_info){.start = range->start,
                                            .size_bytes = range->size_bytes,
                                            .device = range->device,
                                            .access = ct_range_is_read_only(range) ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                                                   : CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                                            .handle_types = range->pool ? ct_memory_pool_handle_types(range->pool) : 0,
                                            .block_id = range->id};
        return CUDA_SUCCESS;
    }
    r = ct_vmm_mapping_at(pointer, out);
    if (r == CUDA_SUCCESS || !is_of_reservation(attribute))
        return r;
    *out = (struct ct_vmm_mapping_info){.start = 0};
    return CUDA_SUCCESS;
}

CUresult ct_pointer_attribute(const struct ct_context *context, CUpointer_attribute attribute, uint64_t pointer, void *data)
{
    const struct row *row;
    union value value = {.u64 = 0};
    struct ct_vmm_mapping_info mapping;
    struct ct_range range;
    CUresult r = find_row(attribute, &row);

    if (r == CUDA_SUCCESS)
        r = ct_address_find(pointer, 0, &range);
    if (r == CUDA_SUCCESS)
        r = find_mapping(attribute, &range, pointer, &mapping);
    if (r == CUDA_SUCCESS)
        r = row->get(&(struct query){context, &range, &mapping, pointer}, &value);
    if (r == CUDA_SUCCESS)
        memcpy(data, &value, row->size_bytes);
    return r;
}

CUresult ct_pointer_attribute_default(CUpointer_attribute attribute, uint64_t pointer, void *data)
{
    const struct row *row;
    union value value;
    struct ct_range range;
    CUresult r = find_row(attribute, &row);

    if (r != CUDA_SUCCESS)
        return r;
    value = row->unknown;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !ct_address_find_any(pointer, 1, &range))
        value.u64 = pointer; /* presumably ordinary host memory */
    memcpy(data, &value, row->size_bytes);
    return CUDA_SUCCESS;
}

CUresult ct_pointer_set_synchronous(uint64_t pointer, bool synchronous)
{
    struct ct_vmm_mapping_info mapping;
    struct ct_range range;
    CUresult r = ct_address_find(pointer, 0, &range);

    if (r != CUDA_SUCCESS)
        return r;
    if (range.kind == CT_RANGE_MODULE || range.kind == CT_RANGE_MANAGED_VARIABLES || range.kind == CT_RANGE_SCRATCH)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in allocated memory", (unsigned long long)pointer);
    if (range.kind == CT_RANGE_VIRTUAL) { /* the error codes are those of NVIDIA's driver */
        r = ct_vmm_mapping_at(pointer, &mapping);
        return r == CUDA_SUCCESS ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "SYNC_MEMOPS cannot be set for memory mapped at reserved addresses")
                                 : r;
    }
    return ct_address_set_synchronous(range.start, range.id, synchronous);
}
