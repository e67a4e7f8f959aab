/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the properties of an OpenCL device: struct ct_cl_physical for the backend, struct ct_device_info for core and the compiler.
 * Properties that devices do not report are in drivers.def. */
#include "cl.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "core/device/workarounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CT_CHANNEL "opencl"

/* Limits of arrays, which are in plain memory here: the usual ones of GPUs. */
#define PLAIN_SIDE 32768u
#define PLAIN_SIDE_3D 16384u
#define PLAIN_LAYERS 2048u
/* CUDA's limits. OpenCL counts the work-groups of a grid in 64 bits. */
#define CUDA_MAX_GRID_X 0x7fffffffu
#define CUDA_MAX_GRID_YZ 65535u
#define CUDA_MAX_BLOCK_THREADS 1024u
#define MAX_TEXT 16384
#define SPIRV_MINOR_NEEDED 2 /* 1.x: the version that the compiler emits */

/* A device that is being examined. */
struct subject {
    const struct ct_cl_api *api;
    cl_platform_id platform;
    cl_device_id device;
    char platform_name[128];
    char extensions[MAX_TEXT];
};

enum { FMA16, FMA32, FMA64, DIV32, DIV64, SQRT32, SQRT64, OPERATIONS };

static const struct driver_facts {
    const char *platform;
    enum ct_device_kind kind;
    const char *extensions;
    uint8_t native, exact[OPERATIONS], keeps_subnormals32, flushes, near, llvm_functions;
    const char *thread_library;
    bool shared_threads, has_stacks;
} drivers[] = {
#define DRIVER(platform, kind, extensions, native, fma16, fma32, fma64, div32, div64, sqrt32, sqrt64, subnormals32, flush, near, llvm,     \
               threads, shared, stacks)                                                                                                    \
    {platform, kind,    extensions, native, {fma16, fma32, fma64, div32, div64, sqrt32, sqrt64}, subnormals32, flush, near,                \
     llvm,     threads, shared,     stacks},
#include "drivers.def"
};

/* ---- queries ---- */

/* Zero if the device does not know the query. */
static uint64_t number(const struct subject *subject, cl_device_info what)
{
    uint64_t value = 0; /* results have 32 or 64 bits; both are correct here on a little-endian machine */

    if (subject->api->clGetDeviceInfo(subject->device, what, sizeof value, &value, NULL) != CL_SUCCESS)
        return 0;
    return value;
}

static uint32_t number32(const struct subject *subject, cl_device_info what)
{
    uint64_t value = number(subject, what);

    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Empty if the device does not know the query. */
static void text(const struct subject *subject, cl_device_info what, char *out, size_t size)
{
    if (subject->api->clGetDeviceInfo(subject->device, what, size, out, NULL) != CL_SUCCESS)
        *out = '\0';
    out[size - 1] = '\0';
}

/* Whether the word `name` of `length` is in a list of words that are separated by blanks. */
static bool lists_word(const char *list, const char *name, size_t length)
{
    for (const char *word = list; *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");

        if (n == length && !memcmp(word, name, length))
            return true;
        word += n;
    }
    return false;
}

static bool has(const struct subject *subject, const char *extension)
{
    return lists_word(subject->extensions, extension, strlen(extension));
}

static bool has_all(const struct subject *subject, const char *names)
{
    for (const char *word = names; *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");

        if (!lists_word(subject->extensions, word, n))
            return false;
        word += n;
    }
    return true;
}

/* "SPIR-V_1.0 SPIR-V_1.2" */
static bool takes_spirv(const struct subject *subject)
{
    char versions[1024];
    unsigned major, minor;

    text(subject, CL_DEVICE_IL_VERSION, versions, sizeof versions);
    for (const char *at = versions; (at = strstr(at, "SPIR-V_")); at++) {
        if (sscanf(at, "SPIR-V_%u.%u", &major, &minor) == 2 && major == 1 && minor >= SPIRV_MINOR_NEEDED)
            return true;
    }
    return false;
}

static bool has_subgroups_of(const struct subject *subject, unsigned lanes)
{
    size_t sizes[32], bytes = 0;

    if (!has(subject, "cl_intel_required_subgroup_size") ||
        subject->api->clGetDeviceInfo(subject->device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes) != CL_SUCCESS)
        return false;
    for (size_t i = 0; i < bytes / sizeof *sizes; i++)
        if (sizes[i] == lanes)
            return true;
    return false;
}

/* The size of a warp, unless an option requests a greater one. */
static unsigned choose_subgroup_size(const struct subject *subject)
{
    const unsigned requested = ct_config()->subgroup > 32 ? (unsigned)ct_config()->subgroup : 32;

    if (has_subgroups_of(subject, requested))
        return requested;
    if (requested != 32)
        ct_log(CT_LOG_WARN, "CUTTLE_SUBGROUP=%u is not one of the subgroup sizes that the device supports", requested);
    return has_subgroups_of(subject, 32) ? 32 : 0;
}

/* ---- the description of the device ---- */

static const char *missing_or_null(const struct subject *subject)
{
    uint64_t svm = number(subject, CL_DEVICE_SVM_CAPABILITIES);

    if (!number(subject, CL_DEVICE_AVAILABLE) || !number(subject, CL_DEVICE_COMPILER_AVAILABLE))
        return "a compiler";
    if (!takes_spirv(subject))
        return "SPIR-V 1.2";
    if (number(subject, CL_DEVICE_ADDRESS_BITS) != 64)
        return "64-bit addresses";
    if (!(svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
        return "fine-grained shared virtual memory";
    return NULL;
}

static enum ct_device_kind device_kind(const struct subject *subject)
{
    uint64_t type = number(subject, CL_DEVICE_TYPE);

    if (type & CL_DEVICE_TYPE_GPU)
        return number(subject, CL_DEVICE_HOST_UNIFIED_MEMORY) ? CT_DEVICE_INTEGRATED : CT_DEVICE_DISCRETE;
    return type & CL_DEVICE_TYPE_CPU ? CT_DEVICE_CPU : CT_DEVICE_OTHER;
}

static const struct driver_facts *find_driver(const struct subject *subject, enum ct_device_kind kind)
{
    static const struct driver_facts unknown;

    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (!strcmp(drivers[i].platform, subject->platform_name) && drivers[i].kind == kind && has_all(subject, drivers[i].extensions))
            return &drivers[i];
    return &unknown;
}

/* 128 bits of FNV-1a, twice 64 with different initial values: the same in every process. */
static void hash_text(const char *text, uint64_t hash[2])
{
    for (; *text; text++) {
        hash[0] = (hash[0] ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
        hash[1] = (hash[1] ^ (uint8_t)~*text) * UINT64_C(0x100000001b3);
    }
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void fill_uuid(const struct subject *subject, struct ct_device_info *info)
{
    uint64_t hash[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};

    if (has(subject, "cl_khr_device_uuid") &&
        subject->api->clGetDeviceInfo(subject->device, CL_DEVICE_UUID_KHR, sizeof info->uuid, info->uuid, NULL) == CL_SUCCESS &&
        !is_zero(info->uuid, sizeof info->uuid))
        return;
    hash_text(subject->platform_name, hash);
    hash_text(info->name, hash);
    hash_text(info->driver, hash);
    memcpy(info->uuid, hash, sizeof info->uuid);
}

static void fill_places(const struct subject *subject, struct ct_device_info *info)
{
    cl_device_pci_bus_info_khr pci;

    info->has_luid = has(subject, "cl_khr_device_uuid") && number32(subject, CL_DEVICE_LUID_VALID_KHR) &&
                     subject->api->clGetDeviceInfo(subject->device, CL_DEVICE_LUID_KHR, sizeof info->luid, info->luid, NULL) == CL_SUCCESS;
    if (info->has_luid)
        info->node_mask = number32(subject, CL_DEVICE_NODE_MASK_KHR);
    info->has_pci = has(subject, "cl_khr_pci_bus_info") &&
                    subject->api->clGetDeviceInfo(subject->device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof pci, &pci, NULL) == CL_SUCCESS;
    if (!info->has_pci)
        return;
    info->pci_domain = pci.pci_domain;
    info->pci_bus = pci.pci_bus;
    info->pci_device = pci.pci_device;
}

/* Names the driver for the table of workarounds. */
static enum ct_driver driver_of(const struct subject *subject, enum ct_device_kind kind)
{
    if (!strcmp(subject->platform_name, "Portable Computing Language"))
        return CT_DRIVER_POCL;
    if (!strcmp(subject->platform_name, "rusticl"))
        return CT_DRIVER_MESA;
    if (strncmp(subject->platform_name, "Intel(R)", 8) != 0)
        return CT_DRIVER_OTHER_OPENCL;
    return kind == CT_DEVICE_CPU ? CT_DRIVER_INTEL_CL_CPU : CT_DRIVER_INTEL_CL_GPU;
}

static void fill_driver(const struct subject *subject, struct ct_device_info *info)
{
    char version[96];

    text(subject, CL_DRIVER_VERSION, version, sizeof version);
    info->driver_id = driver_of(subject, info->kind);
    info->workarounds = ct_workarounds_of(info->driver_id, version);
}

static void fill_names(const struct subject *subject, struct ct_device_info *info)
{
    char version[96];

    text(subject, CL_DEVICE_NAME, info->name, sizeof info->name);
    text(subject, CL_DRIVER_VERSION, version, sizeof version);
    snprintf(info->driver, sizeof info->driver, "%.120s %.95s", subject->platform_name, version);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Intel's runtime for GPUs counts execution units, of which a work-group has those of a subslice. */
static uint32_t count_compute_units(const struct subject *subject, enum ct_device_kind kind)
{
    const uint32_t units = number32(subject, CL_DEVICE_MAX_COMPUTE_UNITS);
    const bool reports_subslices = kind != CT_DEVICE_CPU && has(subject, "cl_intel_device_attribute_query");
    const uint32_t of_subslice = reports_subslices ? number32(subject, CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL) : 0;

    return of_subslice > 1 && units >= of_subslice ? units / of_subslice : units;
}

static void fill_capabilities(const struct subject *subject, const struct ct_cl_physical *physical, struct ct_device_info *info)
{
    bool any_host_memory = physical->memory_form == CT_CL_SYSTEM;
    size_t sizes[3] = {0};

    (void)subject->api->clGetDeviceInfo(subject->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL);
    info->memory_bytes = number(subject, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_allocation_bytes = any_host_memory ? info->memory_bytes : number(subject, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->compute_units = count_compute_units(subject, info->kind);
    info->clock_khz = number32(subject, CL_DEVICE_MAX_CLOCK_FREQUENCY) * 1000;
    info->l2_bytes = number32(subject, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    info->max_block_threads = min_u32(number32(subject, CL_DEVICE_MAX_WORK_GROUP_SIZE), CUDA_MAX_BLOCK_THREADS);
    info->max_block_threads = min_u32(info->max_block_threads, (uint32_t)sizes[0]);
    info->shared_bytes = number32(subject, CL_DEVICE_LOCAL_MEM_SIZE);
    info->max_grid[0] = CUDA_MAX_GRID_X;
    info->max_grid[1] = info->max_grid[2] = CUDA_MAX_GRID_YZ;
    info->copy_queues = 1; /* copies of one stream run beside kernels of another */
    info->concurrent_kernels = true;
    info->address_rule = CT_ADDRESS_SHARED;
    info->host_visible_device_memory = true;
    info->integrated_memory = info->kind == CT_DEVICE_INTEGRATED || info->kind == CT_DEVICE_CPU;
    info->maps_host = true; /* only devices with fine-grained SVM are listed */
    info->can_import_host = info->pageable_access = info->import_read_only = any_host_memory;
    info->virtual_memory = any_host_memory ? CT_VIRTUAL_PAGES : CT_VIRTUAL_NONE;
    info->virtual_aliases = info->virtual_memory_fd = info->memory_fd = any_host_memory;
    info->timestamps = true;
    info->images = (struct ct_image_limits){PLAIN_SIDE, PLAIN_SIDE, PLAIN_SIDE_3D, PLAIN_SIDE, PLAIN_LAYERS, PLAIN_LAYERS / 6 * 6};
    info->timestamp_period_ns = (double)number(subject, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
}

static void fill_features(const struct subject *subject, struct ptx2spv_target *target)
{
    uint64_t add32 = 0, add64 = 0, clock = 0;

    if (has(subject, "cl_ext_float_atomics")) {
        add32 = number(subject, CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT);
        add64 = number(subject, CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT);
    }
    if (has(subject, "cl_khr_kernel_clock"))
        clock = number(subject, CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR);
    target->float64 = number(subject, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    target->float16 = has(subject, "cl_khr_fp16");
    target->int64 = target->int16 = target->int8 = target->storage8 = target->storage16 = 1; /* part of OpenCL's full profile */
    target->shared_explicit_layout = target->shared_explicit_layout8 = target->shared_explicit_layout16 = 1;
    target->atomic_int64_global = target->atomic_int64_shared =
        has(subject, "cl_khr_int64_base_atomics") && has(subject, "cl_khr_int64_extended_atomics");
    target->atomic_float32_add_global = (add32 & CL_DEVICE_GLOBAL_FP_ATOMIC_ADD_EXT) != 0;
    target->atomic_float32_add_shared = (add32 & CL_DEVICE_LOCAL_FP_ATOMIC_ADD_EXT) != 0;
    target->atomic_float64_add_global = (add64 & CL_DEVICE_GLOBAL_FP_ATOMIC_ADD_EXT) != 0;
    target->atomic_float64_add_shared = (add64 & CL_DEVICE_LOCAL_FP_ATOMIC_ADD_EXT) != 0;
    target->memory_model_device_scope = (number(subject, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES) & CL_DEVICE_ATOMIC_SCOPE_DEVICE) != 0;
    target->shader_clock_device = (clock & CL_DEVICE_KERNEL_CLOCK_SCOPE_DEVICE_KHR) != 0;
    target->shader_clock_subgroup = (clock & CL_DEVICE_KERNEL_CLOCK_SCOPE_SUB_GROUP_KHR) != 0;
}

/* The CPU devices are this machine's processor. */
static bool processor_has_fma(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("fma");
#else
    return true; /* all other 64-bit processors have it */
#endif
}

/* What the OpenCL C specification guarantees (3.0, "Relative Error as ULPs"): fma is rounded once, with CL_FP_FMA in hardware, and so
 * are division and square root of 64-bit floats; those of 32-bit floats with the option that kernel.c uses. For CPU runtimes only
 * measured properties are relied on. */
static void trust_specification(const struct subject *subject, struct ptx2spv_target *target)
{
    const uint64_t whole = CL_FP_FMA | CL_FP_DENORM | CL_FP_INF_NAN;
    bool half = has(subject, "cl_khr_fp16") && (number(subject, CL_DEVICE_HALF_FP_CONFIG) & whole) == whole;
    bool single = (number(subject, CL_DEVICE_SINGLE_FP_CONFIG) & whole) == whole;
    bool twice = (number(subject, CL_DEVICE_DOUBLE_FP_CONFIG) & whole) == whole;

    target->exact_fma16 = half;
    target->exact_fma32 = target->keeps_subnormals32 = single;
    target->exact_div32 = target->exact_sqrt32 =
        single && (number(subject, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
    target->exact_fma64 = target->exact_div64 = target->exact_sqrt64 = twice;
    target->near_functions = PTX2SPV_NEAR_SIN; /* 4 ulp; the others may have an error of 2 or 3 */
    target->denorm_flush32 = 1;                /* -cl-denorms-are-zero allows it, and the probe tells whether the device does it */
}

static void fill_target(const struct subject *subject, const struct driver_facts *driver, const struct ct_device_info *info,
                        struct ptx2spv_target *target)
{
    const unsigned lanes = driver->native ? choose_subgroup_size(subject) : 0;

    target->dialect = PTX2SPV_OPENCL;
    target->workarounds = info->workarounds & PTX2SPV_WORKAROUNDS;
    target->pointer_rule = PTX2SPV_POINTER_SAME;
    target->warp_form = lanes ? PTX2SPV_WARP_NATIVE : PTX2SPV_WARP_COLLECTIVE;
    target->subgroup_size = lanes ? lanes : 1; /* collective: not used */
    target->threads_in_turn = info->kind == CT_DEVICE_CPU;
    target->shared_bytes = info->shared_bytes;
    target->max_block_threads = info->max_block_threads;
    fill_features(subject, target);
    target->exact_fma16 = driver->exact[FMA16] && target->float16 && (info->kind != CT_DEVICE_CPU || processor_has_fma());
    target->exact_fma32 = driver->exact[FMA32] && (info->kind != CT_DEVICE_CPU || processor_has_fma());
    target->exact_fma64 = driver->exact[FMA64] && (info->kind != CT_DEVICE_CPU || processor_has_fma());
    target->exact_div32 = driver->exact[DIV32];
    target->exact_div64 = driver->exact[DIV64];
    target->exact_sqrt32 = driver->exact[SQRT32];
    target->exact_sqrt64 = driver->exact[SQRT64];
    target->keeps_subnormals32 = driver->keeps_subnormals32;
    target->denorm_flush32 = driver->flushes;
    target->near_functions = driver->near ? PTX2SPV_NEAR_ALL : 0;
    target->llvm_functions = driver->llvm_functions && processor_has_fma();
    target->exact_zeros = 1;
    target->vectorizes = info->kind == CT_DEVICE_CPU;
    target->vectors = info->kind == CT_DEVICE_CPU ? PTX2SPV_VECTORS_LOADS_SPLIT : PTX2SPV_VECTORS_WHOLE;
    if (info->kind != CT_DEVICE_CPU)
        trust_specification(subject, target);
}

static void fill_physical(const struct subject *subject, enum ct_device_kind kind, struct ct_cl_physical *out)
{
    uint64_t svm = number(subject, CL_DEVICE_SVM_CAPABILITIES);
    bool system = (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) && strcasecmp(ct_config()->opencl_memory, "svm");

    out->handle = subject->device;
    out->platform = subject->platform;
    out->memory_form = system ? CT_CL_SYSTEM : CT_CL_BUFFER;
    out->svm_flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | (svm & CL_DEVICE_SVM_ATOMICS ? CL_MEM_SVM_ATOMICS : 0);
    out->has_native_kernels = kind == CT_DEVICE_CPU && (number(subject, CL_DEVICE_EXECUTION_CAPABILITIES) & CL_EXEC_NATIVE_KERNEL) != 0;
}

bool ct_cl_device_examine(const struct ct_cl_api *api, cl_platform_id platform, cl_device_id handle, struct ct_cl_physical *out,
                          struct ct_device_info *out_info, const char **out_reason)
{
    struct subject subject = {.api = api, .platform = platform, .device = handle};
    const struct driver_facts *driver;

    memset(out, 0, sizeof *out);
    memset(out_info, 0, sizeof *out_info);
    if (api->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof subject.platform_name, subject.platform_name, NULL) != CL_SUCCESS)
        subject.platform_name[0] = '\0';
    text(&subject, CL_DEVICE_EXTENSIONS, subject.extensions, sizeof subject.extensions);
    fill_names(&subject, out_info);
    if ((*out_reason = missing_or_null(&subject)))
        return false;
    out_info->kind = device_kind(&subject);
    out_info->vendor_id = number32(&subject, CL_DEVICE_VENDOR_ID);
    fill_uuid(&subject, out_info);
    fill_places(&subject, out_info);
    fill_physical(&subject, out_info->kind, out);
    fill_capabilities(&subject, out, out_info);
    fill_driver(&subject, out_info);
    driver = find_driver(&subject, out_info->kind);
    out_info->thread_library = driver->thread_library;
    out_info->shared_threads = driver->shared_threads;
    out_info->unproven_functions = !driver->near;
    out_info->block_local_bytes = driver->has_stacks ? ct_cl_stacks_room() : 0;
    out_info->thread_routine = ct_cl_device_needs_waiters(out_info) ? ct_cl_waiter_main : NULL;
    fill_target(&subject, driver, out_info, &out_info->target);
    return true;
}
