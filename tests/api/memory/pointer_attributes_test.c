/* SPDX-License-Identifier: Apache-2.0 */
/* Every pointer attribute of every kind of pointer. The expectations follow from the allocation and from the manual (Driver API: Unified
 * Addressing, cuPointerGetAttribute). NVIDIA's own driver must pass, too; where the manual leaves the result open, only our own result is
 * checked. */
#include "virtual_memory.h"

#include <unistd.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define N_MOST 48 /* kinds */

/* A pointer, and the properties that its memory was allocated with. */
struct pointer {
    const char *name;
    CUdeviceptr at;
    bool unknown;      /* unknown to CUDA: every attribute is INVALID_VALUE */
    bool ours;         /* the manual does not specify it: checked on our driver only */
    CUmemorytype type; /* 0: none, since nothing is mapped there */
    CUdeviceptr start; /* of the allocation or of the reservation */
    size_t size;
    CUdeviceptr device;  /* the address for kernels */
    void *host;          /* the address for the host; NULL: the host has no access */
    bool managed, owned; /* owned: belongs to the context that was current */
    unsigned access;     /* CU_POINTER_ATTRIBUTE_ACCESS_FLAG_* */
    CUmemoryPool pool;
    CUdeviceptr mapping; /* VMM: of the mapping, otherwise of the allocation */
    size_t mapping_size;
    unsigned long long handle_types;
};

static struct pointer pointers[N_MOST];
static size_t n_pointers;
static CUcontext context;

static struct pointer *add(const struct pointer *pointer)
{
    assert_true(n_pointers < N_MOST);
    pointers[n_pointers] = *pointer;
    return &pointers[n_pointers++];
}

/* The first byte of a range, one inside, and the last; and the byte after it, which belongs to other memory or to none. */
static void add_range(const char *const names[4], const struct pointer *range)
{
    size_t offsets[] = {0, range->size / 2 + 1, range->size - 1};
    struct pointer p;

    for (unsigned i = 0; i < 3; i++) {
        p = *range;
        p.name = names[i];
        p.at += offsets[i];
        p.device += offsets[i];
        p.host = p.host ? (char *)p.host + offsets[i] : NULL;
        add(&p);
    }
    if (names[3])
        add(&(struct pointer){.name = names[3], .at = range->at + range->size, .unknown = true, .ours = true});
}

static struct pointer device_memory(CUdeviceptr at, size_t size)
{
    return (struct pointer){.at = at,
                            .type = CU_MEMORYTYPE_DEVICE,
                            .start = at,
                            .size = size,
                            .device = at,
                            .owned = true,
                            .access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE,
                            .mapping = at,
                            .mapping_size = size};
}

static struct pointer host_memory(void *host, size_t size)
{
    struct pointer p = device_memory((CUdeviceptr)(uintptr_t)host, size);

    p.type = CU_MEMORYTYPE_HOST;
    p.host = host;
    ok(cuMemHostGetDevicePointer(&p.device, host, 0));
    return p;
}

/* ---- creation ---- */

static struct {
    CUdeviceptr small, large, pitched, managed, pooled, freed, reserved, imported;
    CUexternalMemory external;
    void *host, *combined, *registered, *only_read, *freed_host;
    CUmemoryPool pool;
    CUmodule module;
    size_t pitch, granule;
    bool may_read;
    char plain[64];
} made;

static void make_device_memory(void)
{
    static const char *const small[] = {"cuMemAlloc", "inside of cuMemAlloc", "the last byte of cuMemAlloc", "one past cuMemAlloc"};
    static const char *const large[] = {"large cuMemAlloc", "inside of it", "its last byte", NULL};
    static const char *const pitched[] = {"cuMemAllocPitch", "inside of cuMemAllocPitch", "the last byte of cuMemAllocPitch", NULL};
    struct pointer p;

    ok(cuMemAlloc(&made.small, 1000));
    ok(cuMemAlloc(&made.large, 5 * MIB));
    ok(cuMemAllocPitch(&made.pitched, &made.pitch, 700, 30, 4));
    p = device_memory(made.small, 1000);
    add_range(small, &p);
    p = device_memory(made.large, 5 * MIB);
    add_range(large, &p);
    p = device_memory(made.pitched, made.pitch * 30);
    add_range(pitched, &p);
}

static void make_host_memory(void)
{
    static const char *const host[] = {"cuMemHostAlloc", "inside of cuMemHostAlloc", "the last byte of cuMemHostAlloc",
                                       "one past cuMemHostAlloc"};
    static const char *const combined[] = {"write-combined", "inside of write-combined", "the last byte of write-combined", NULL};
    static const char *const registered[] = {"registered", "inside of registered", "the last registered byte", "one past registered"};
    struct pointer p;

    ok(cuMemHostAlloc(&made.host, 3 * PAGE - 100, 0)); /* so that the byte after it belongs to nothing else */
    p = host_memory(made.host, 3 * PAGE - 100);
    add_range(host, &p);
    ok(cuMemHostAlloc(&made.combined, 3 * PAGE, CU_MEMHOSTALLOC_WRITECOMBINED));
    p = host_memory(made.combined, 3 * PAGE);
    p.ours = true; /* the manual describes the second address of such memory, but not the first */
    add_range(combined, &p);
    made.registered = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(made.registered, MAP_FAILED);
    ok(cuMemHostRegister(made.registered, 2 * PAGE, 0));
    p = host_memory(made.registered, 2 * PAGE);
    add_range(registered, &p);
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)) {
        made.only_read = (char *)made.registered + 3 * PAGE;
        ok(cuMemHostRegister(made.only_read, PAGE, CU_MEMHOSTREGISTER_READ_ONLY));
        p = host_memory(made.only_read, PAGE);
        p.access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
        p.ours = true; /* the manual does not describe access flags of registered memory */
        add_range((const char *const[]){"registered to be read", "inside of it", "the last byte to be read", NULL}, &p);
    }
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        return;
    ok(cuMemAllocManaged(&made.managed, 3 * PAGE, CU_MEM_ATTACH_GLOBAL));
    p = device_memory(made.managed, 3 * PAGE);
    p.managed = true;
    p.host = (void *)(uintptr_t)made.managed;
    add_range((const char *const[]){"cuMemAllocManaged", "inside of managed", "the last managed byte", NULL}, &p);
}

static void make_pooled(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct pointer p;

    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return;
    ok(cuMemPoolCreate(&made.pool, &props));
    ok(cuMemAllocFromPoolAsync(&made.pooled, 3000, made.pool, CU_STREAM_PER_THREAD));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    p = device_memory(made.pooled, 3000);
    p.pool = made.pool;
    p.owned = false; /* a pool belongs to a device */
    add_range((const char *const[]){"of a pool", "inside of a pool's", "the last byte of a pool's", NULL}, &p);
}

/* Two granules each: readable and writable, mapped without access or for reading, exportable, and nothing. */
static void map_each(void)
{
    CUmemAllocationProp props = vm_properties();
    CUmemGenericAllocationHandle handle;

    props.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    for (unsigned i = 0; i < 3; i++) {
        handle = i < 2 ? vm_create(2) : 0;
        if (i == 2)
            ok(cuMemCreate(&handle, 2 * made.granule, &props, 0));
        ok(cuMemMap(made.reserved + 2 * i * made.granule, 2 * made.granule, 0, handle, 0));
        ok(cuMemRelease(handle));
    }
    ok(vm_access(made.reserved, 2 * made.granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    made.may_read = vm_access(made.reserved + 2 * made.granule, 2 * made.granule, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS;
}

static void make_virtual(void)
{
    static const char *const names[] = {"mapped", "mapped, not to be written", "mapped, exportable", "reserved"};
    const unsigned access[] = {CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE,
                               made.may_read ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE,
                               CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE};

    for (unsigned i = 0; i < 4; i++) {
        struct pointer p = device_memory(made.reserved + 2 * i * made.granule + 5, 8 * made.granule);

        p.name = names[i];
        p.start = made.reserved;
        p.mapping = made.reserved + 2 * i * made.granule;
        p.mapping_size = 2 * made.granule;
        p.owned = false; /* the memory belongs to a device */
        p.access = access[i];
        p.handle_types = i == 2 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
        p.type = i == 3 ? 0 : CU_MEMORYTYPE_DEVICE;
        p.ours = i != 0;
        add(&p);
    }
}

/* Memory imported from a descriptor: exported by the same driver, so that no other API is needed. The manual does not state whether such a
 * re-import works. */
static void make_imported(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 2 * made.granule};
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = PAGE, .size = 3000};
    CUmemAllocationProp props = vm_properties();
    CUmemGenericAllocationHandle handle;
    struct pointer p;
    CUresult r;

    if (!on_cuttle() || !seeds_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return;
    props.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ok(cuMemCreate(&handle, 2 * made.granule, &props, 0));
    ok(cuMemExportToShareableHandle(&desc.handle.fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    r = cuImportExternalMemory(&made.external, &desc); /* the import takes ownership of the descriptor */
    ok(cuMemRelease(handle));
    if (r == CUDA_ERROR_NOT_SUPPORTED) { /* OpenCL */
        assert_int_equal(close(desc.handle.fd), 0);
        return;
    }
    ok(r);
    ok(cuExternalMemoryGetMappedBuffer(&made.imported, made.external, &buffer));
    p = device_memory(made.imported, 3000);
    p.ours = true;
    add_range((const char *const[]){"imported", "inside of imported", "the last imported byte", NULL}, &p);
}

static void make_others(void)
{
    static const char variable_ptx[] = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 variable[100];\n";
    struct pointer p;
    CUdeviceptr at;
    size_t size;

    ok(cuModuleLoadData(&made.module, variable_ptx));
    ok(cuModuleGetGlobal(&at, &size, made.module, "variable"));
    p = device_memory(at + 5, size);
    p.name = "variable of a module";
    p.start = p.mapping = 0; /* owned by the module, not by the variable */
    p.ours = true;
    add(&p);
    ok(cuMemAlloc(&made.freed, 64 * MIB)); /* a separate one: nothing else gets its address */
    ok(cuMemFree(made.freed));
    add(&(struct pointer){.name = "freed", .at = made.freed, .unknown = true});
    ok(cuMemAllocHost(&made.freed_host, 64 * MIB));
    ok(cuMemFreeHost(made.freed_host));
    add(&(struct pointer){.name = "freed host memory", .at = (CUdeviceptr)(uintptr_t)made.freed_host, .unknown = true});
    add(&(struct pointer){.name = "NULL", .at = 0, .unknown = true});
    add(&(struct pointer){.name = "1", .at = 1, .unknown = true});
    add(&(struct pointer){.name = "the last address", .at = UINT64_MAX, .unknown = true, .ours = true});
    add(&(struct pointer){.name = "static memory", .at = (CUdeviceptr)(uintptr_t)(made.plain + 1), .unknown = true});
    add(&(struct pointer){.name = "memory on the stack", .at = (CUdeviceptr)(uintptr_t)&p, .unknown = true});
}

static int make_all(void **state)
{
    if (with_context(state))
        return -1;
    context = *state;
    make_device_memory();
    make_host_memory();
    make_pooled();
    if (vm_is_there()) {
        made.granule = vm_granule();
        ok(cuMemAddressReserve(&made.reserved, 8 * made.granule, 0, 0, 0));
        map_each();
        make_virtual();
        make_imported();
    }
    make_others();
    return 0;
}

static int free_all(void **state)
{
    ok(cuModuleUnload(made.module));
    if (made.external) {
        ok(cuMemFree(made.imported));
        ok(cuDestroyExternalMemory(made.external));
    }
    if (made.reserved) {
        ok(cuMemUnmap(made.reserved, 6 * made.granule));
        ok(cuMemAddressFree(made.reserved, 8 * made.granule));
    }
    if (made.pool) {
        ok(cuMemFreeAsync(made.pooled, CU_STREAM_PER_THREAD));
        ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        ok(cuMemPoolDestroy(made.pool));
    }
    ok(cuMemFree(made.managed));
    ok(cuMemHostUnregister(made.registered));
    if (made.only_read)
        ok(cuMemHostUnregister(made.only_read));
    munmap(made.registered, 4 * PAGE);
    ok(cuMemFreeHost(made.host));
    ok(cuMemFreeHost(made.combined));
    ok(cuMemFree(made.small));
    ok(cuMemFree(made.large));
    ok(cuMemFree(made.pitched));
    return without_context(state);
}

/* ---- expectations; false: unspecified ---- */

typedef bool expectation(const struct pointer *p, uint64_t *out);

static bool its_context(const struct pointer *p, uint64_t *out)
{
    *out = p->owned ? (uint64_t)(uintptr_t)context : 0;
    return true;
}

static bool its_type(const struct pointer *p, uint64_t *out)
{
    *out = p->type;
    return true;
}

/* "the value returned in *data will equal the input value ptr", except where host and device have different addresses. */
static bool its_device_pointer(const struct pointer *p, uint64_t *out)
{
    *out = p->device;
    return true;
}

static bool its_host_pointer(const struct pointer *p, uint64_t *out)
{
    *out = (uint64_t)(uintptr_t)p->host;
    return true;
}

static bool whether_managed(const struct pointer *p, uint64_t *out)
{
    *out = p->managed;
    return true;
}

/* "a device ordinal of a device against which the memory was allocated or registered" */
static bool its_device(const struct pointer *p, uint64_t *out)
{
    (void)p;
    *out = 0;
    return true;
}

/* "the address of the mappable address range ptr references (e.g. from cuMemAddressReserve)" */
static bool its_start(const struct pointer *p, uint64_t *out)
{
    *out = p->start;
    return p->start != 0;
}

static bool its_size(const struct pointer *p, uint64_t *out)
{
    *out = p->size;
    return p->start != 0;
}

static bool whether_mapped(const struct pointer *p, uint64_t *out)
{
    *out = p->type != 0;
    return true;
}

static bool its_handle_types(const struct pointer *p, uint64_t *out)
{
    *out = p->handle_types;
    return true;
}

static bool its_access(const struct pointer *p, uint64_t *out)
{
    *out = p->access;
    return true;
}

/* "the mempool handle for the allocation if it was allocated from a mempool. Otherwise returns NULL" */
static bool its_pool(const struct pointer *p, uint64_t *out)
{
    *out = (uint64_t)(uintptr_t)p->pool;
    return true;
}

static bool its_mapping(const struct pointer *p, uint64_t *out)
{
    *out = p->mapping;
    return p->mapping != 0 && on_cuttle();
}

static bool its_mapping_size(const struct pointer *p, uint64_t *out)
{
    *out = p->mapping_size;
    return p->mapping != 0 && on_cuttle();
}

/* "can be used with cuIpcGetMemHandle": compared with the result of that call. */
static bool whether_ipc(const struct pointer *p, uint64_t *out)
{
    CUipcMemHandle handle;

    *out = cuIpcGetMemHandle(&handle, p->at) == CUDA_SUCCESS;
    return p->type == CU_MEMORYTYPE_DEVICE && p->at == p->start;
}

static bool whether_rdma(const struct pointer *p, uint64_t *out)
{
    (void)p;
    *out = 0;
    return !seeds_attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
}

static bool whether_decompress(const struct pointer *p, uint64_t *out)
{
    *out = p->access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return on_cuttle(); /* NVIDIA's driver: 0 without an engine for decompression */
}

/* A value that depends on the driver only; the test only checks that there is one. */
static bool anything(const struct pointer *p, uint64_t *out)
{
    (void)p;
    (void)out;
    return false;
}

#define NULL_VALUE 0
static const struct {
    const char *name;
    CUpointer_attribute attribute;
    size_t bytes;
    expectation *expected;
    uint64_t none;    /* the default value of cuPointerGetAttributes for pointers without the attribute */
    bool of_reserved; /* also for addresses where nothing is mapped */
} rows[] = {
    {"CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, 8, its_context, NULL_VALUE, false},
    {"MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4, its_type, NULL_VALUE, false},
    {"DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8, its_device_pointer, NULL_VALUE, false},
    {"HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, 8, its_host_pointer, NULL_VALUE, false},
    {"SYNC_MEMOPS", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, whether_managed, NULL_VALUE, false},
    {"BUFFER_ID", CU_POINTER_ATTRIBUTE_BUFFER_ID, 8, anything, NULL_VALUE, false},
    {"IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, whether_managed, NULL_VALUE, false},
    {"DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4, its_device, (uint32_t)CU_DEVICE_INVALID, false},
    {"IS_LEGACY_CUDA_IPC_CAPABLE", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, whether_ipc, NULL_VALUE, false},
    {"RANGE_START_ADDR", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, its_start, NULL_VALUE, true},
    {"RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, its_size, NULL_VALUE, true},
    {"MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, 4, whether_mapped, NULL_VALUE, true},
    {"ALLOWED_HANDLE_TYPES", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, its_handle_types, NULL_VALUE, false},
    {"IS_GPU_DIRECT_RDMA_CAPABLE", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, whether_rdma, NULL_VALUE, false},
    {"ACCESS_FLAGS", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4, its_access, NULL_VALUE, false},
    {"MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8, its_pool, NULL_VALUE, false},
    {"MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8, its_mapping_size, NULL_VALUE, false},
    {"MAPPING_BASE_ADDR", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8, its_mapping, NULL_VALUE, false},
    {"MEMORY_BLOCK_ID", CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 8, anything, NULL_VALUE, false},
    {"IS_HW_DECOMPRESS_CAPABLE", CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4, whether_decompress, NULL_VALUE, false},
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* Whether the pointer has the attribute at all: "if there exists no host pointer value [...] CUDA_ERROR_INVALID_VALUE is returned". */
static bool has(const struct pointer *p, size_t row)
{
    if (p->unknown || (p->type == 0 && !rows[row].of_reserved))
        return false;
    if (rows[row].attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) /* "through which ptr may be accessed by kernels" */
        return p->access != CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    return rows[row].attribute != CU_POINTER_ATTRIBUTE_HOST_POINTER || p->host;
}

/* ---- the tests ---- */

static void each_attribute_of_each_pointer(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pointers; i++) {
        const struct pointer *p = &pointers[i];

        for (size_t row = 0; row < N_ROWS && (!p->ours || on_cuttle()); row++) {
            const uint64_t before = 0xa5a5a5a5a5a5a5a5;
            uint64_t value = before, expected = 0, mask = rows[row].bytes == 8 ? UINT64_MAX : UINT32_MAX;
            CUresult r = cuPointerGetAttribute(&value, rows[row].attribute, p->at);

            if (r != (has(p, row) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))
                fail_msg("%s: %s: %s", p->name, rows[row].name, api_error_name(r));
            if (r != CUDA_SUCCESS && value != before && on_cuttle()) /* NVIDIA's driver writes 0 for a missing host pointer */
                fail_msg("%s: %s: written though it failed", p->name, rows[row].name);
            if (r == CUDA_SUCCESS && (value & ~mask) != (before & ~mask))
                fail_msg("%s: %s: written beyond its type", p->name, rows[row].name);
            if (r == CUDA_SUCCESS && rows[row].expected(p, &expected) && (value & mask) != expected)
                fail_msg("%s: %s: 0x%llx, not 0x%llx", p->name, rows[row].name, (unsigned long long)(value & mask),
                         (unsigned long long)expected);
        }
    }
}

/* P2P_TOKENS are for another kernel driver, "nv-p2p.h"; only NVIDIA's own driver supports them. */
static void tokens_for_another_driver(void **state)
{
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens, before;

    (void)state;
    if (!on_cuttle())
        skip();
    memset(&before, 0xa5, sizeof before);
    for (size_t i = 0; i < n_pointers; i++) {
        const struct pointer *p = &pointers[i];

        tokens = before;
        gives(p->unknown || !p->type || (p->host && !p->managed) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED,
              cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p->at));
        assert_memory_equal(&tokens, &before, sizeof tokens);
    }
}

/* cuPointerGetAttributes: "Unlike cuPointerGetAttribute, this function will not return an error when the ptr encountered is not a valid
 * CUDA pointer. Instead, the attributes are assigned default NULL values and CUDA_SUCCESS is returned." */
static void all_attributes_at_once(void **state)
{
    CUpointer_attribute attributes[N_ROWS];
    uint64_t values[N_ROWS], single;
    void *data[N_ROWS];

    (void)state;
    for (size_t i = 0; i < n_pointers; i++) {
        const struct pointer *p = &pointers[i];

        if (p->ours && !on_cuttle())
            continue;
        for (size_t row = 0; row < N_ROWS; row++) {
            attributes[row] = rows[row].attribute;
            data[row] = &values[row];
            values[row] = 0;
        }
        ok(cuPointerGetAttributes(N_ROWS, attributes, data, p->at));
        for (size_t row = 0; row < N_ROWS; row++) {
            uint64_t none = rows[row].none;

            if (rows[row].attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && p->unknown)
                none = p->at; /* indistinguishable from ordinary host memory */
            single = 0;
            if (cuPointerGetAttribute(&single, rows[row].attribute, p->at) != CUDA_SUCCESS)
                single = none;
            if (values[row] != single)
                fail_msg("%s: %s: 0x%llx, alone 0x%llx", p->name, rows[row].name, (unsigned long long)values[row],
                         (unsigned long long)single);
        }
    }
}

/* BUFFER_ID: "guaranteed to be unique across the process": the same for all bytes of an allocation, different from every other
 * allocation. */
static void ids_tell_allocations_apart(void **state)
{
    unsigned long long ids[N_MOST] = {0};

    (void)state;
    for (size_t i = 0; i < n_pointers; i++)
        if (!pointers[i].unknown && pointers[i].type && !(pointers[i].ours && !on_cuttle()))
            ok(cuPointerGetAttribute(&ids[i], CU_POINTER_ATTRIBUTE_BUFFER_ID, pointers[i].at));
    for (size_t i = 0; i < n_pointers; i++)
        for (size_t k = 0; k < i; k++) {
            if (!ids[i] || !ids[k] || !pointers[i].start || !pointers[k].start)
                continue;
            if ((ids[i] == ids[k]) != (pointers[i].start == pointers[k].start))
                fail_msg("%s and %s: %llu and %llu", pointers[k].name, pointers[i].name, ids[k], ids[i]);
        }
}

/* "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: a boolean attribute which when set, ensures that [...] synchronous memory operations [...] will always
 * synchronize": it applies to the whole allocation, and to no other one. */
static void synchronous_applies_to_the_whole_allocation(void **state)
{
    const CUdeviceptr inside[] = {made.small + 1, made.large + 3 * MIB, made.pitched + 1, (CUdeviceptr)(uintptr_t)made.host + PAGE};
    unsigned on = 1, off = 0, value = 0;

    (void)state;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside[i]));
        for (size_t k = 0; k < sizeof inside / sizeof *inside; k++) {
            ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside[k] + 1));
            assert_int_equal(value, k == i);
        }
        ok(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside[i]));
    }
    for (size_t i = 0; i < n_pointers; i++)
        if (pointers[i].unknown)
            gives(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointers[i].at));
}

/* DEVICE_POINTER: "If there is no current CUcontext then CUDA_ERROR_INVALID_CONTEXT is returned." The other attributes need none. */
static void without_a_context(void **state)
{
    uint64_t value = 0;

    (void)state;
    ok(cuCtxSetCurrent(NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_CONTEXT, cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, made.small));
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, made.small + 9));
    assert_int_equal(value, made.small);
    ok(cuCtxSetCurrent(context));
}

/* The second address of an allocation is reused at once after it is freed: attributes of the new allocation are independent of the old
 * one. */
static void nothing_is_left_of_what_was_freed(void **state)
{
    unsigned on = 1, value = 7;
    CUdeviceptr first, second;
    size_t size = 0;

    (void)state;
    ok(cuMemAlloc(&first, 3000));
    ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, first));
    ok(cuMemFree(first));
    ok(cuMemAlloc(&second, 2900));
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, second));
    assert_int_equal(value, 0);
    ok(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, second));
    assert_int_equal(size, 2900);
    ok(cuMemFree(second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_attribute_of_each_pointer),
        cmocka_unit_test(tokens_for_another_driver),
        cmocka_unit_test(all_attributes_at_once),
        cmocka_unit_test(ids_tell_allocations_apart),
        cmocka_unit_test(synchronous_applies_to_the_whole_allocation),
        cmocka_unit_test(without_a_context),
        cmocka_unit_test(nothing_is_left_of_what_was_freed),
    };

    return cmocka_run_group_tests(tests, make_all, free_all);
}
