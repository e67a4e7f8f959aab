/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of API calls in several threads, while one more thread destroys objects that they also use.
 *
 *     random_programs_test [SECONDS] [--seed SEED]
 *
 * Each thread has objects and memory of its own, which nobody else destroys, and a model of them. random_calls.def has a row for each call; an
 * argument is chosen by its generator, which also says what it is: VALID, INVALID (destroyed, null, of another kind, made up, out of range), or
 * UNKNOWN: it belongs to an object that the destroying thread may destroy at any time. From that follows which results are legal:
 *
 *   all arguments are VALID     CUDA_SUCCESS, or the row's other result
 *   at least one is INVALID     not CUDA_SUCCESS
 *   else                        CUDA_SUCCESS or an error
 *
 * and in no case a result that says that the library, a kernel or the device failed. The model also knows the bytes of each thread's memory, and
 * compares them. The seed determines what each thread does, but not how the threads' calls interleave. */
#include "lifetime_kinds.h"
#include "races_on_purpose.h"

#include "api_kernels.h"

#include <time.h>
#include <unistd.h>

enum { THREADS = 4, SECONDS = 2, MAX_ARGUMENTS = 5, MAX_LIVE = 6, MAX_DEAD = 8, MAX_BUFFERS = 10, BUFFER_BYTES = 16384, MAX_COPY = 4096 };
enum { RAMP_WORDS = 64, ROUNDING = 1024 /* more than allocations are rounded up by */ };

enum verdict { VALID, UNKNOWN, INVALID };
enum purpose { NAMED, READ, WRITTEN };

enum handle_type {
    H_STREAM,
    H_EVENT,
    H_MODULE,
    H_FUNCTION,
    H_LIBRARY,
    H_KERNEL,
    H_ARRAY,
    H_POOL,
    H_PHYSICAL,
    H_LINK,
    HANDLE_TYPES,
    H_NONE = HANDLE_TYPES
};

/* An object of a thread. A function or kernel ends with the module or library that it was found in, its parent. */
struct own {
    uint64_t handle, parent;
};

enum buffer_type { DEVICE, MANAGED, POOLED, PINNED, PAGEABLE };

/* Memory of a thread. Commands in `stream` may still use it. */
struct buffer {
    enum buffer_type type;
    uint64_t at;
    bool is_known; /* the bytes are those of `content` */
    bool is_used;
    CUstream stream;
    unsigned char content[BUFFER_BYTES];
};

/* A part of a buffer; buffer is NULL for an argument that is not memory of this thread. */
struct part {
    struct buffer *buffer;
    uint64_t offset;
};

struct program {
    struct user user;
    unsigned index;
    struct own live[HANDLE_TYPES][MAX_LIVE];
    unsigned n_live[HANDLE_TYPES];
    uint64_t dead[HANDLE_TYPES][MAX_DEAD]; /* 0: none yet */
    unsigned n_dead[HANDLE_TYPES];
    struct buffer buffers[MAX_BUFFERS];
    uint64_t counts[3]; /* of calls, by verdict */
    /* the call that is being made */
    uint64_t bytes, unit; /* that it copies or fills */
    struct part dst, src, freed;
    CUstream stream;
    bool stream_is_own;
    struct own *chosen; /* the latest valid handle, and its type */
    enum handle_type chosen_type;
    uint64_t out[8];
};

struct generated {
    uint64_t value;
    enum verdict verdict;
};

struct generator {
    const char *name;
    struct generated (*make)(struct program *p, uint64_t parameter);
    uint64_t parameter;
};

struct effect {
    void (*apply)(struct program *p, const uint64_t *arguments);
    enum handle_type creates;
    bool allocates;
};

struct call {
    const char *name;
    CUresult (*make)(const uint64_t *arguments);
    unsigned n;
    unsigned generators[MAX_ARGUMENTS];
    const struct effect *effect;
    CUresult also;
};

static atomic_bool over;
static unsigned long seconds = SECONDS;
static uint64_t seed;
static _Thread_local struct program *running;

static bool is_one_in(struct program *p, uint64_t n)
{
    return number(&p->user, n) == 0;
}

static struct generated valid(uint64_t value)
{
    return (struct generated){value, VALID};
}

static struct generated invalid(uint64_t value)
{
    return (struct generated){value, INVALID};
}

/* ---- handles ---- */

/* Kinds whose objects the destroying thread makes and destroys; value: which of its values is the handle. */
static const struct {
    const char *kind;
    unsigned value;
} raced[HANDLE_TYPES] = {
    [H_STREAM] = {"stream", 0},       [H_EVENT] = {"event", 0},     [H_MODULE] = {"module", 0},
    [H_FUNCTION] = {"module", 1},     [H_LIBRARY] = {"library", 0}, [H_KERNEL] = {"library", 1},
    [H_ARRAY] = {"array", 0},         [H_POOL] = {"pool", 0},       [H_PHYSICAL] = {"physical memory", 0},
    [H_LINK] = {"linker's state", 0},
};

/* 0: the device has none, or there is none yet. */
static uint64_t raced_value(struct program *p, const char *kind, unsigned value)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (strcmp(slots[i].kind->name, kind) == 0)
            return atomic_load(&slots[i + number(&p->user, SLOTS_OF_KIND)].values[value]);
    abort(); /* no such kind */
}

/* A handle that is not of this type. A kernel may stand for a function. */
static uint64_t wrong_handle(struct program *p, enum handle_type type)
{
    const enum handle_type other = (enum handle_type)number(&p->user, HANDLE_TYPES);
    const bool may_be_it = other == type || ((type == H_FUNCTION || type == H_KERNEL) && (other == H_FUNCTION || other == H_KERNEL));

    if (!may_be_it && p->n_live[other])
        return p->live[other][number(&p->user, p->n_live[other])].handle;
    return 0x1234567890 + number(&p->user, 1000);
}

static struct generated bad_handle(struct program *p, enum handle_type type)
{
    const uint64_t dead = p->dead[type][number(&p->user, MAX_DEAD)];

    return invalid(dead && !is_one_in(p, 3) ? dead : wrong_handle(p, type));
}

static struct generated gen_handle(struct program *p, uint64_t type)
{
    const uint64_t which = number(&p->user, 16), other = raced_value(p, raced[type].kind, raced[type].value);

    if (which == 0)
        return is_one_in(p, 4) ? invalid(0) : bad_handle(p, (enum handle_type)type);
    if (which <= 2 && other > 2)
        return (struct generated){other, UNKNOWN};
    if (!p->n_live[type])
        return bad_handle(p, (enum handle_type)type);
    p->chosen = &p->live[type][number(&p->user, p->n_live[type])];
    p->chosen_type = (enum handle_type)type;
    return valid(p->chosen->handle);
}

/* A stream to enqueue something in. */
static struct generated gen_stream(struct program *p, uint64_t may_be_unknown)
{
    const uint64_t which = number(&p->user, 8);
    struct generated stream = which < 3 ? valid(which) : gen_handle(p, H_STREAM); /* 0 to 2: default streams */

    if (stream.verdict == INVALID && stream.value <= 2)
        stream.verdict = VALID;
    if (stream.verdict == UNKNOWN && !may_be_unknown)
        stream = valid(0);
    p->stream = (CUstream)(uintptr_t)stream.value;
    p->stream_is_own = stream.verdict == VALID;
    return stream;
}

/* ---- memory ---- */

static bool is_host(const struct buffer *buffer)
{
    return buffer->type == PINNED || buffer->type == PAGEABLE;
}

/* Another buffer than `but_not`, on the host or not. NULL: there is none. */
static struct buffer *choose_buffer(struct program *p, bool on_host, const struct buffer *but_not)
{
    const uint64_t first = number(&p->user, MAX_BUFFERS);

    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        struct buffer *buffer = &p->buffers[(first + i) % MAX_BUFFERS];

        if (buffer->is_used && is_host(buffer) == on_host && buffer != but_not)
            return buffer;
    }
    return NULL;
}

static struct generated choose_part(struct program *p, struct buffer *buffer, uint64_t purpose)
{
    struct part part = {buffer, number(&p->user, BUFFER_BYTES - p->bytes + 1)};

    part.offset -= part.offset % p->unit;
    if (purpose == WRITTEN)
        p->dst = part;
    else
        p->src = part;
    return valid(buffer->at + part.offset);
}

static struct generated gen_memory(struct program *p, uint64_t purpose)
{
    struct buffer *buffer = choose_buffer(p, false, p->dst.buffer);
    const uint64_t which = number(&p->user, 24), other = raced_value(p, "mapped memory", 0);

    if (which == 0 || !buffer)
        return invalid(is_one_in(p, 2) ? 0 : UINT64_C(0xdeadbeef0000));
    if (which == 1 && purpose != NAMED && p->bytes > ROUNDING)
        return invalid(buffer->at + BUFFER_BYTES - p->unit);
    if (which == 2 && other)
        return (struct generated){other, UNKNOWN};
    return choose_part(p, buffer, purpose);
}

static struct generated gen_host(struct program *p, uint64_t purpose)
{
    struct buffer *buffer = choose_buffer(p, true, p->dst.buffer);

    return buffer && !is_one_in(p, 24) ? choose_part(p, buffer, purpose) : invalid(0);
}

/* For the functions that take an address which CUDA does not know for one of the host: memory of any type, and no address that is made up. */
static struct generated gen_unified(struct program *p, uint64_t purpose)
{
    struct generated memory = is_one_in(p, 2) ? gen_memory(p, purpose) : gen_host(p, purpose);
    struct buffer *buffer = choose_buffer(p, true, p->dst.buffer);

    if (memory.verdict == INVALID && (memory.value == 0 || memory.value == UINT64_C(0xdeadbeef0000)))
        memory = choose_part(p, buffer, purpose);
    return memory;
}

/* What a kernel writes is always memory of this thread. */
static struct generated gen_kernel_memory(struct program *p, uint64_t unused)
{
    struct buffer *buffer = choose_buffer(p, false, NULL);

    (void)unused;
    p->bytes = RAMP_WORDS * 4;
    p->unit = 4;
    return buffer ? choose_part(p, buffer, WRITTEN) : valid(p->user.memory);
}

static struct generated gen_base(struct program *p, uint64_t type)
{
    const uint64_t first = number(&p->user, MAX_BUFFERS);

    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        struct buffer *buffer = &p->buffers[(first + i) % MAX_BUFFERS];

        if (!buffer->is_used || buffer->type != type)
            continue;
        if (is_one_in(p, 8))
            return invalid(type == PINNED ? UINT64_C(0xdeadbeef0000) : buffer->at + 64);
        p->freed = (struct part){buffer, 0};
        return valid(buffer->at);
    }
    return invalid(UINT64_C(0xdeadbeef0000));
}

static struct generated gen_size(struct program *p, uint64_t unit)
{
    if (is_one_in(p, 40))
        return invalid(is_one_in(p, 2) ? UINT64_MAX : UINT64_C(1) << 40);
    return valid(p->bytes / unit);
}

/* Where a wrong size would make the call read or write beyond host memory that CUDA does not know. */
static struct generated gen_right_size(struct program *p, uint64_t unused)
{
    (void)unused;
    return valid(p->bytes);
}

static struct generated gen_allocation(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? (struct generated){is_one_in(p, 2) ? 0 : UINT64_C(1) << 50, UNKNOWN} : valid(BUFFER_BYTES);
}

/* ---- other arguments ---- */

static struct generated gen_out(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 32) ? invalid(0) : valid((uintptr_t)p->out);
}

static struct generated gen_some_out(struct program *p, uint64_t unused)
{
    (void)unused;
    return valid((uintptr_t)&p->out[4]);
}

static struct generated gen_out_or_null(struct program *p, uint64_t unused)
{
    (void)unused;
    return valid(is_one_in(p, 8) ? 0 : (uintptr_t)p->out);
}

static struct generated gen_any(struct program *p, uint64_t below)
{
    return valid(number(&p->user, below));
}

static struct generated gen_limited(struct program *p, uint64_t last)
{
    return is_one_in(p, 24) ? invalid(last + 0x1000) : valid(number(&p->user, last + 1));
}

static struct generated gen_attach(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? invalid(0x1000) : valid(CU_MEM_ATTACH_GLOBAL);
}

static struct generated gen_blocks(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? invalid(0) : is_one_in(p, 16) ? (struct generated){100000, UNKNOWN} : valid(RAMP_WORDS);
}

static struct generated gen_grid(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? invalid(0) : valid(1 + number(&p->user, 3));
}

static struct generated gen_pointer_attribute(struct program *p, uint64_t unused)
{
    const uint64_t attribute = 1 + number(&p->user, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);

    (void)unused;
    if (is_one_in(p, 16))
        return invalid(1000);
    return valid(attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CU_POINTER_ATTRIBUTE_CONTEXT : attribute); /* GPUs have tokens */
}

static struct generated gen_device_attribute(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? invalid(100000) : valid(1 + number(&p->user, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
}

static struct generated gen_pool_attribute(struct program *p, uint64_t unused)
{
    (void)unused;
    return is_one_in(p, 16) ? invalid(1000) : valid(1 + number(&p->user, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
}

static struct generated gen_name(struct program *p, uint64_t of_variable)
{
    static const char *const right[] = {"ramp", "variable"}, *const wrong[] = {"absent", "", NULL};

    return is_one_in(p, 8) ? invalid((uintptr_t)wrong[number(&p->user, 3)]) : valid((uintptr_t)right[of_variable]);
}

static struct generated gen_image(struct program *p, uint64_t for_linker)
{
    static const char image[] = PTX_HEADER ".visible .global .align 4 .b8 variable[8192];\n" PTX_RAMP;
    static const char empty[] = PTX_HEADER, garbage[] = "this is no image of any kind\n";

    if (is_one_in(p, 8))
        return invalid(for_linker || is_one_in(p, 2) ? 0 : (uintptr_t)garbage);
    return valid((uintptr_t)(for_linker ? empty : image));
}

/* ---- calls that are more than one of the API ---- */

/* The model does not follow a destroyed stream, so it has to be idle. */
static CUresult destroy_stream(CUstream stream)
{
    const CUresult r = cuStreamSynchronize(stream);

    return r == CUDA_SUCCESS ? cuStreamDestroy(stream) : r;
}

static CUresult get_context_of_stream(CUstream stream, CUcontext *out)
{
    return cuStreamGetCtx(stream, out);
}

static void CUDA_CB count_up(void *count)
{
    atomic_fetch_add((atomic_uint *)count, 1);
}

static CUresult launch_host_function(CUstream stream)
{
    static atomic_uint count;

    return cuLaunchHostFunc(stream, count_up, &count);
}

static CUresult elapsed_time(float *out, CUevent start, CUevent end)
{
    const CUresult r = cuEventElapsedTime(out, start, end);

    return r == CUDA_ERROR_NOT_READY ? CUDA_ERROR_INVALID_HANDLE : r; /* not complete, or not recorded with a time */
}

static CUresult free_managed(CUdeviceptr at)
{
    return cuMemFree(at);
}

static CUresult free_pooled_async(CUdeviceptr at, CUstream stream)
{
    return cuMemFreeAsync(at, stream);
}

static CUresult launch_ramp(CUdeviceptr at, CUfunction function, unsigned threads, unsigned blocks, CUstream stream)
{
    uint32_t a = 0x01020304, count = RAMP_WORDS;
    void *params[] = {&at, &a, &count};

    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static CUresult launch_kernel(CUdeviceptr at, CUkernel kernel, unsigned threads, unsigned blocks, CUstream stream)
{
    return launch_ramp(at, (CUfunction)kernel, threads, blocks, stream);
}

static CUresult load_library(CUlibrary *out, const void *image)
{
    return cuLibraryLoadData(out, image, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult create_link(CUlinkState *out)
{
    return cuLinkCreate(0, NULL, NULL, out);
}

static CUresult link_image(CUlinkState state, void *image)
{
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, image, image ? strlen(image) + 1 : 0, "empty", 0, NULL, NULL);
}

static CUresult create_array(CUarray *out)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = MAX_COPY / 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};

    return cuArrayCreate(out, &desc);
}

static CUresult copy_through_array(void *dst, const void *src, size_t bytes, CUarray array)
{
    const CUresult r = cuMemcpyHtoA(array, 0, src, bytes);

    return r == CUDA_SUCCESS ? cuMemcpyAtoH(dst, array, 0, bytes) : r;
}

static CUresult create_pool(CUmemoryPool *out)
{
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

    return cuMemPoolCreate(out, &properties);
}

static CUresult create_physical(CUmemGenericAllocationHandle *out)
{
    CUmemAllocationProp properties;
    const size_t bytes = granule(&properties);

    return cuMemCreate(out, bytes, &properties, 0);
}

static CUresult copy_through(CUdeviceptr at, void *dst, const void *src, size_t bytes)
{
    const CUresult r = cuMemcpyHtoD(at, src, bytes);

    return r == CUDA_SUCCESS ? cuMemcpyDtoH(dst, at, bytes) : r;
}

static CUresult copy_through_mapping(void *dst, const void *src, size_t bytes, CUmemGenericAllocationHandle handle)
{
    CUmemAllocationProp properties;
    const size_t granule_bytes = granule(&properties);
    const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;
    CUresult r = cuMemAddressReserve(&at, granule_bytes, 0, 0, 0);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = cuMemMap(at, granule_bytes, 0, handle, 0)) == CUDA_SUCCESS) {
        if ((r = cuMemSetAccess(at, granule_bytes, &access, 1)) == CUDA_SUCCESS)
            r = copy_through(at, dst, src, bytes);
        cuMemUnmap(at, granule_bytes);
    }
    cuMemAddressFree(at, granule_bytes);
    return r;
}

static CUresult push_and_pop(CUcontext *out)
{
    const CUresult r = cuCtxPushCurrent(running->user.context);

    return r == CUDA_SUCCESS ? cuCtxPopCurrent(out) : r;
}

/* ---- effects ---- */

static void add_own(struct program *p, enum handle_type type, uint64_t parent)
{
    if (p->n_live[type] < MAX_LIVE)
        p->live[type][p->n_live[type]++] = (struct own){p->out[0], parent};
    else /* a function or kernel, which nobody has to destroy */
        p->live[type][number(&p->user, MAX_LIVE)] = (struct own){p->out[0], parent};
}

static void bury(struct program *p, enum handle_type type, unsigned i)
{
    p->dead[type][p->n_dead[type]++ % MAX_DEAD] = p->live[type][i].handle;
    p->live[type][i] = p->live[type][--p->n_live[type]];
}

static void forget_children(struct program *p, enum handle_type type, uint64_t parent)
{
    for (unsigned i = p->n_live[type]; i-- > 0;)
        if (p->live[type][i].parent == parent)
            bury(p, type, i);
}

static void destroy_chosen(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    if (p->chosen_type == H_MODULE)
        forget_children(p, H_FUNCTION, p->chosen->handle);
    if (p->chosen_type == H_LIBRARY)
        forget_children(p, H_KERNEL, p->chosen->handle);
    for (unsigned i = 0; i < MAX_BUFFERS; i++)
        if (p->chosen_type == H_STREAM && (uintptr_t)p->buffers[i].stream == p->chosen->handle)
            p->buffers[i].stream = NULL;
    bury(p, p->chosen_type, (unsigned)(p->chosen - p->live[p->chosen_type]));
}

static void add_function(struct program *p, const uint64_t *arguments)
{
    add_own(p, H_FUNCTION, arguments[1]);
}

static void add_kernel(struct program *p, const uint64_t *arguments)
{
    add_own(p, H_KERNEL, arguments[1]);
}

static struct buffer *free_buffer_or_null(struct program *p)
{
    for (unsigned i = 0; i < MAX_BUFFERS; i++)
        if (!p->buffers[i].is_used)
            return &p->buffers[i];
    return NULL;
}

static void add_buffer(struct program *p, enum buffer_type type)
{
    struct buffer *buffer = free_buffer_or_null(p);

    if (!p->out[0])
        return; /* of no bytes */
    buffer->type = type;
    buffer->at = p->out[0];
    buffer->is_known = false;
    buffer->is_used = true;
    buffer->stream = p->stream;
}

static void add_device(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    add_buffer(p, DEVICE);
}

static void add_managed(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    add_buffer(p, MANAGED);
}

static void add_pooled(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    add_buffer(p, POOLED);
}

static void add_pinned(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    add_buffer(p, PINNED);
}

static void remove_buffer(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    p->freed.buffer->is_used = false;
}

static void copy_content(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    memcpy(p->dst.buffer->content + p->dst.offset, p->src.buffer->content + p->src.offset, p->bytes);
    p->dst.buffer->is_known &= p->src.buffer->is_known;
}

static void fill_content(struct program *p, const uint64_t *arguments)
{
    for (uint64_t i = 0; i < p->bytes; i++)
        p->dst.buffer->content[p->dst.offset + i] = (unsigned char)(arguments[1] >> 8 * (i % p->unit));
}

static void write_ramp(struct program *p, const uint64_t *arguments)
{
    (void)arguments;
    for (uint32_t i = 0; p->dst.buffer && i < RAMP_WORDS; i++) {
        const uint32_t word = 0x01020304 + i;

        memcpy(p->dst.buffer->content + p->dst.offset + 4 * i, &word, 4);
    }
}

#define CREATED(name, type)                                                                                                                \
    static void add_##name(struct program *p, const uint64_t *arguments)                                                                   \
    {                                                                                                                                      \
        (void)arguments;                                                                                                                   \
        add_own(p, type, 0);                                                                                                               \
    }                                                                                                                                      \
    static const struct effect name##_created = {add_##name, type, false};
CREATED(stream, H_STREAM)
CREATED(event, H_EVENT)
CREATED(module, H_MODULE)
CREATED(library, H_LIBRARY)
CREATED(link, H_LINK)
CREATED(array, H_ARRAY)
CREATED(pool, H_POOL)
CREATED(physical, H_PHYSICAL)
#undef CREATED
static const struct effect no_effect = {NULL, H_NONE, false}, handle_destroyed = {destroy_chosen, H_NONE, false},
                           function_found = {add_function, H_NONE, false}, kernel_found = {add_kernel, H_NONE, false},
                           device_allocated = {add_device, H_NONE, true}, managed_allocated = {add_managed, H_NONE, true},
                           pooled_allocated = {add_pooled, H_NONE, true}, pinned_allocated = {add_pinned, H_NONE, true},
                           memory_freed = {remove_buffer, H_NONE, false}, copied = {copy_content, H_NONE, false},
                           filled = {fill_content, H_NONE, false}, ramp_written = {write_ramp, H_NONE, false};

/* ---- the tables ---- */

#define GENERATOR(name, type, function, parameter) G_##name,
enum {
#include "random_calls.def"
    GENERATORS
};
#define GENERATOR(name, type, function, parameter) typedef type T_##name;
#include "random_calls.def"
#define GENERATOR(name, type, function, parameter) [G_##name] = {#name, function, parameter},
static const struct generator generators[GENERATORS] = {
#include "random_calls.def"
};

#define ARGUMENT(name, i) (T_##name)(uintptr_t) a[i]
#define ARGUMENTS_0(x)
#define ARGUMENTS_1(A) ARGUMENT(A, 0)
#define ARGUMENTS_2(A, B) ARGUMENTS_1(A), ARGUMENT(B, 1)
#define ARGUMENTS_3(A, B, C) ARGUMENTS_2(A, B), ARGUMENT(C, 2)
#define ARGUMENTS_4(A, B, C, D) ARGUMENTS_3(A, B, C), ARGUMENT(D, 3)
#define ARGUMENTS_5(A, B, C, D, E) ARGUMENTS_4(A, B, C, D), ARGUMENT(E, 4)
#define CALL(n, function, effect, also, ...)                                                                                               \
    static CUresult call_##function(const uint64_t *a)                                                                                     \
    {                                                                                                                                      \
        (void)a;                                                                                                                           \
        return function(ARGUMENTS_##n(__VA_ARGS__));                                                                                       \
    }
#include "random_calls.def"

#define INDICES_0(x) 0
#define INDICES_1(A) G_##A
#define INDICES_2(A, B) G_##A, G_##B
#define INDICES_3(A, B, C) G_##A, G_##B, G_##C
#define INDICES_4(A, B, C, D) G_##A, G_##B, G_##C, G_##D
#define INDICES_5(A, B, C, D, E) G_##A, G_##B, G_##C, G_##D, G_##E
#define CALL(n, function, effect, also, ...) {#function, call_##function, n, {INDICES_##n(__VA_ARGS__)}, &effect, also},
static const struct call calls[] = {
#include "random_calls.def"
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- one call ---- */

static void fail_call(const struct program *p, const struct call *call, const uint64_t *arguments, const enum verdict *verdicts, CUresult r)
{
    static const char *const names[] = {[VALID] = "", [UNKNOWN] = "?", [INVALID] = "!"};
    char text[512] = "";

    for (unsigned i = 0; i < call->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s 0x%llx%s", i ? ", " : "", generators[call->generators[i]].name,
                 (unsigned long long)arguments[i], names[verdicts[i]]);
    print_error("thread %u, call %llu: %s(%s) gave %s\n", p->index, (unsigned long long)(p->counts[0] + p->counts[1] + p->counts[2]),
                call->name, text, api_error_name(r));
    atomic_fetch_add(&unexpected, 1);
}

/* Waits for all commands that may use the buffer, unless they are in this stream. */
static void settle(struct program *p, struct buffer *buffer, const CUstream *but_not)
{
    CUresult r;

    if (!buffer || (but_not && buffer->stream == *but_not))
        return;
    if ((r = cuStreamSynchronize(buffer->stream)) != CUDA_SUCCESS) {
        print_error("thread %u: cuStreamSynchronize of a stream gave %s\n", p->index, api_error_name(r));
        atomic_fetch_add(&unexpected, 1);
    }
}

static bool is_failure(CUresult r)
{
    static const CUresult failures[] = {
        CUDA_ERROR_UNKNOWN,         CUDA_ERROR_NOT_INITIALIZED,   CUDA_ERROR_DEINITIALIZED,       CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_FAILED,   CUDA_ERROR_LAUNCH_TIMEOUT,    CUDA_ERROR_MISALIGNED_ADDRESS,  CUDA_ERROR_ASSERT,
        CUDA_ERROR_NO_DEVICE,       CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_INVALID_CONTEXT,
    };

    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i] == r)
            return true;
    return false;
}

static bool is_legal(const struct call *call, enum verdict verdict, CUresult r)
{
    if (is_failure(r))
        return false;
    if (verdict == VALID)
        return r == CUDA_SUCCESS || r == call->also;
    return verdict == UNKNOWN || r != CUDA_SUCCESS;
}

/* A call with an object that may be gone succeeded: nothing is known of what it wrote, but it does not go on. */
static void forget_content(struct program *p)
{
    if (!p->dst.buffer)
        return;
    if (!p->stream_is_own)
        check(&kinds[0], "cuCtxSynchronize", 0, cuCtxSynchronize());
    p->dst.buffer->is_known = false;
}

static void follow(struct program *p, const struct call *call, const uint64_t *arguments, enum verdict verdict)
{
    struct buffer *const used[] = {p->dst.buffer, p->src.buffer};

    if (call->effect->apply && (verdict == VALID || call->effect->allocates))
        call->effect->apply(p, arguments);
    else if (verdict == UNKNOWN)
        forget_content(p);
    for (unsigned i = 0; i < 2; i++)
        if (used[i])
            used[i]->stream = p->stream_is_own ? p->stream : NULL;
}

/* Whether the thread has room for what the call makes. */
static bool has_room(struct program *p, const struct call *call)
{
    return (call->effect->creates == H_NONE || p->n_live[call->effect->creates] < MAX_LIVE) &&
           (!call->effect->allocates || free_buffer_or_null(p));
}

static void begin_call(struct program *p, const struct call *call)
{
    p->unit = 1;
    for (unsigned i = 0; i < call->n; i++)
        if (generators[call->generators[i]].make == gen_size)
            p->unit = generators[call->generators[i]].parameter;
    p->bytes = 4 * (1 + number(&p->user, MAX_COPY / 4));
    p->dst = p->src = p->freed = (struct part){NULL, 0};
    p->stream = NULL;
    p->stream_is_own = true;
    p->chosen = NULL;
    memset(p->out, 0, sizeof p->out);
}

static void make_call(struct program *p, const struct call *call)
{
    uint64_t arguments[MAX_ARGUMENTS] = {0};
    enum verdict verdicts[MAX_ARGUMENTS], verdict = VALID;
    CUresult r;

    begin_call(p, call);
    for (unsigned i = 0; i < call->n; i++) {
        const struct generator *generator = &generators[call->generators[i]];
        const struct generated got = generator->make(p, generator->parameter);

        arguments[i] = got.value;
        verdicts[i] = got.verdict;
        verdict = got.verdict > verdict ? got.verdict : verdict;
    }
    settle(p, p->dst.buffer, p->stream_is_own ? &p->stream : NULL);
    settle(p, p->src.buffer, p->stream_is_own ? &p->stream : NULL);
    settle(p, p->freed.buffer, NULL);
    r = call->make(arguments);
    p->counts[verdict]++;
    if (!is_legal(call, verdict, r))
        fail_call(p, call, arguments, verdicts, r);
    else if (r == CUDA_SUCCESS)
        follow(p, call, arguments, verdict);
}

/* ---- a program ---- */

static void compare(struct program *p, const struct buffer *buffer, const unsigned char *bytes)
{
    for (unsigned i = 0; i < BUFFER_BYTES; i++) {
        if (bytes[i] == buffer->content[i])
            continue;
        print_error("thread %u, call %llu: byte %u of memory of type %u at 0x%llx is 0x%02x, not 0x%02x\n", p->index,
                    (unsigned long long)(p->counts[0] + p->counts[1] + p->counts[2]), i, (unsigned)buffer->type,
                    (unsigned long long)buffer->at, bytes[i], buffer->content[i]);
        atomic_fetch_add(&unexpected, 1);
        return;
    }
}

/* Gives the buffer new bytes, when nothing uses it. */
static void renew(struct program *p, struct buffer *buffer)
{
    const unsigned char byte = (unsigned char)number(&p->user, 256);

    memset(buffer->content, byte, BUFFER_BYTES);
    buffer->is_known = true;
    if (is_host(buffer))
        memset((void *)(uintptr_t)buffer->at, byte, BUFFER_BYTES);
    else
        check(&kinds[0], "cuMemsetD8", 0, cuMemsetD8(buffer->at, byte, BUFFER_BYTES));
    buffer->stream = NULL;
}

static void verify(struct program *p, struct buffer *buffer)
{
    static _Thread_local unsigned char bytes[BUFFER_BYTES];

    if (!buffer->is_used)
        return;
    settle(p, buffer, NULL);
    if (is_host(buffer))
        memcpy(bytes, (const void *)(uintptr_t)buffer->at, BUFFER_BYTES);
    else
        check(&kinds[0], "cuMemcpyDtoH", 0, cuMemcpyDtoH(bytes, buffer->at, BUFFER_BYTES));
    if (buffer->is_known)
        compare(p, buffer, bytes);
    if (!buffer->is_known || is_one_in(p, 16))
        renew(p, buffer);
}

/* Destroys what the thread still has. */
static void clean_up(struct program *p)
{
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        struct buffer *buffer = &p->buffers[i];

        verify(p, buffer);
        settle(p, buffer, NULL);
        if (buffer->is_used && buffer->type == PINNED)
            check(&kinds[0], "cuMemFreeHost", 0, cuMemFreeHost((void *)(uintptr_t)buffer->at));
        else if (buffer->is_used && buffer->type == PAGEABLE)
            free((void *)(uintptr_t)buffer->at);
        else if (buffer->is_used)
            check(&kinds[0], "cuMemFree", 0, cuMemFree(buffer->at));
    }
    for (enum handle_type type = 0; type < HANDLE_TYPES; type++)
        for (unsigned c = 0; c < CALLS; c++)
            while (p->n_live[type] && calls[c].effect == &handle_destroyed && generators[calls[c].generators[0]].parameter == type) {
                check(&kinds[0], calls[c].name, 0, calls[c].make(&p->live[type][0].handle));
                bury(p, type, 0);
            }
}

static void *run_program(void *argument)
{
    struct program *p = argument;

    running = p;
    check(&kinds[0], "starting a thread", 0, start_user(&p->user));
    for (unsigned i = 0; i < 2; i++) {
        p->stream = NULL;
        p->out[0] = (uintptr_t)malloc(BUFFER_BYTES);
        add_buffer(p, PAGEABLE);
    }
    while (!atomic_load(&over) && !atomic_load(&unexpected)) {
        const struct call *call = &calls[number(&p->user, CALLS)];

        if (is_one_in(p, 8))
            verify(p, &p->buffers[number(&p->user, MAX_BUFFERS)]);
        else if (has_room(p, call))
            make_call(p, call);
    }
    clean_up(p);
    return NULL;
}

static void *destroy_all(void *argument)
{
    struct user *user = argument;

    check(&kinds[0], "starting the destroying thread", 0, start_user(user));
    while (!atomic_load(&over) && !atomic_load(&unexpected)) {
        struct slot *slot = &slots[number(user, SLOTS)];

        if (is_there(slot->kind))
            change_slot(slot, user);
    }
    return NULL;
}

static void test_random_programs(void **state)
{
    static struct program programs[THREADS];
    static struct user destroyer;
    pthread_t threads[THREADS + 1];
    uint64_t counts[3] = {0};

    if (!on_cuttle())
        skip(); /* CUDA leaves it undefined */
    print_message("seed %llu\n", (unsigned long long)seed);
    prepare_slots();
    destroyer = (struct user){.context = *state, .random = seed};
    assert_int_equal(pthread_create(&threads[THREADS], NULL, destroy_all, &destroyer), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        programs[i].user.context = *state;
        programs[i].user.random = (seed * THREADS + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        programs[i].index = i;
        assert_int_equal(pthread_create(&threads[i], NULL, run_program, &programs[i]), 0);
    }
    for (unsigned long i = 0; i < seconds && !atomic_load(&unexpected); i++)
        sleep(1);
    atomic_store(&over, true);
    for (unsigned i = 0; i < THREADS + 1; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        for (unsigned verdict = VALID; verdict <= INVALID; verdict++)
            counts[verdict] += programs[i].counts[verdict];
    print_message("%llu valid calls, %llu with objects that may be gone, %llu invalid ones\n", (unsigned long long)counts[VALID],
                  (unsigned long long)counts[UNKNOWN], (unsigned long long)counts[INVALID]);
    empty_slots(&destroyer);
    assert_int_equal(unexpected, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
    };
    const char *given = getenv("CUTTLE_TEST_SEED");

    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else
            seconds = strtoul(argv[i], NULL, 0);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
