/* SPDX-License-Identifier: Apache-2.0 */
/* Single accesses to mapped memory, according to the CUDA programming guide ("Mapped Memory"): "1-byte, 2-byte, 4-byte, 8-byte, and 16-byte
 * naturally aligned loads and stores to host memory initiated from the device are preserved as single accesses from the point of view of
 * the host". One side stores two patterns in turn; the other side must never see a mixture of both. */
#include "seeds.h"

#include <time.h>

#define THREADS 8u /* each has a slot of 16 bytes */
#define PLACE_BYTES 16u
#define STOP 1024u /* where the host signals the end: nothing else ends a kernel */
#define TOLD 2048u /* two words for each thread: the number of changes that it has seen, and at the end the number of torn accesses */

/* The number of pattern changes that one side must see in a slot, or, if processors are busy, the time limit. */
#define CHANGES 1000u
#define ENOUGH_MS 20
#define LIMIT_MS 10000

/* `load` and `store` are the instructions without the address; `first` and -1 are the stored patterns. */
static const struct access {
    const char *name, *load, *store, *first;
    unsigned element_bytes, elements;
} accesses[] = {
    {"1 byte", "ld.volatile.global.u8", "st.volatile.global.u8", "0", 1, 1},
    {"2 bytes", "ld.volatile.global.u16", "st.volatile.global.u16", "0", 2, 1},
    {"4 bytes", "ld.volatile.global.u32", "st.volatile.global.u32", "0", 4, 1},
    {"8 bytes", "ld.volatile.global.u64", "st.volatile.global.u64", "0", 8, 1},
    {"4 x 1 byte", "ld.global.v4.u8", "st.global.v4.u8", "0", 1, 4},
    {"2 x 2 bytes, of the system", "ld.relaxed.sys.global.v2.b16", "st.relaxed.sys.global.v2.b16", "0", 2, 2},
    {"4 x 2 bytes", "ld.global.v4.u16", "st.global.v4.u16", "0", 2, 4},
    {"4 x 2 bytes, volatile", "ld.volatile.global.v4.b16", "st.volatile.global.v4.b16", "0", 2, 4},
    {"2 x 4 bytes", "ld.global.v2.u32", "st.global.v2.u32", "0", 4, 2},
    {"2 floats, cached", "ld.global.ca.v2.f32", "st.global.cg.v2.f32", "0", 4, 2},
    {"2 x 4 bytes, volatile", "ld.volatile.global.v2.s32", "st.volatile.global.v2.s32", "0", 4, 2},
    {"2 floats, of the system", "ld.acquire.sys.global.v2.f32", "st.release.sys.global.v2.f32", "0", 4, 2},
    {"2 x 4 bytes, generic", "ld.relaxed.sys.v2.b32", "st.relaxed.sys.v2.b32", "0", 4, 2},
    {"2 x 8 bytes", "ld.global.v2.u64", "st.global.v2.u64", "0", 8, 2},
    {"2 doubles, volatile", "ld.volatile.global.v2.f64", "st.volatile.global.v2.f64", "0", 8, 2},
    {"4 x 4 bytes", "ld.global.v4.u32", "st.global.v4.u32", "0", 4, 4},
    {"4 floats, of the system", "ld.relaxed.sys.global.v4.f32", "st.relaxed.sys.global.v4.f32", "0", 4, 4},
    {"4 floats, generic", "ld.volatile.v4.f32", "st.volatile.v4.f32", "0", 4, 4},
    {"128 bits", "ld.global.b128", "st.global.b128", "0", 8, 2},
    {"128 bits, of the system", "ld.relaxed.sys.global.b128", "st.relaxed.sys.global.b128", "0", 8, 2},
    {"128 bits, released", "ld.acquire.sys.b128", "st.release.sys.b128", "0", 8, 2},
};

/* "atomics to memory may be broken by the hardware into separate load and store operations. These component load and store operations have
 * the same requirements on preservation of naturally aligned accesses." */
static const struct access atomics[] = {
    {"exchange of 4 bytes", NULL, "atom.global.exch.b32 %o,", "0", 4, 1},
    {"exchange of 8 bytes", NULL, "atom.global.exch.b64 %o,", "0", 8, 1},
    {"inversion of 8 bytes", NULL, "red.global.xor.b64", "-1", 8, 1},
};
#define N_ACCESSES (sizeof accesses / sizeof *accesses)
#define N_ATOMICS (sizeof atomics / sizeof *atomics)

static unsigned bytes_of(const struct access *access)
{
    return access->element_bytes * access->elements;
}

/* Width of the registers that hold elements. */
static unsigned register_bits(const struct access *access)
{
    return access->element_bytes == 1 ? 16 : access->element_bytes * 8;
}

/* The elements are the halves of one register. */
static bool is_joined(const struct access *access)
{
    return strstr(access->store, ".b128");
}

/* The maximum size of the device's single accesses. llvmpipe does not support 16 bytes: docs/devices.md. There elements of vectors are
 * accessed in two parts, as the PTX ISA allows (8.2.4, "Memory Operations on Vector Data Types"), and strong accesses of 128 bits are
 * rejected. */
static unsigned single_bytes(void)
{
    CUdevice device;
    char name[256];

    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetName(name, sizeof name, device));
    return on_cuttle() && strstr(name, "llvmpipe") ? 8 : 16;
}

static bool is_refused(const struct access *access)
{
    return is_joined(access) && strncmp(access->load, "ld.global", 9) != 0 && single_bytes() < 16;
}

/* ---- kernels ---- */

/* The start of a kernel: %d1 is p or, with `own`, the thread's slot there. */
static int write_head(const char *name, const struct access *access, bool own, char *out, size_t size)
{
    const unsigned bits = register_bits(access);

    return snprintf(out, size,
                    ".version %s\n.target sm_70\n.address_size 64\n"
                    ".visible .entry %s(.param .u64 p)\n{\n%s"
                    ".reg .pred %%p; .reg .b32 %%r<5>; .reg .b64 %%d<5>; .reg .b%u %%a, %%b, %%o, %%e<4>;\n"
                    "ld.param.u64 %%d4, [p]; mov.u32 %%r3, %%tid.x; mul.wide.u32 %%d3, %%r3, %u; add.u64 %%d1, %%d4, %s;\n",
                    is_joined(access) ? "8.4" : "6.0", name, is_joined(access) ? ".reg .b128 %q<2>;\n" : "", bits, PLACE_BYTES,
                    own ? "%d3" : "0");
}

/* `{%a, %a}`, or `{%e0, %e1}` if the elements are numbered. */
static void write_list(const struct access *access, const char *name, bool numbered, char out[64])
{
    size_t at = (size_t)snprintf(out, 64, "%s", access->elements > 1 ? "{" : "");

    for (unsigned i = 0; i < access->elements; i++) {
        at += (size_t)snprintf(out + at, 64 - at, "%s%s", i ? ", " : "", name);
        if (numbered)
            at += (size_t)snprintf(out + at, 64 - at, "%u", i);
    }
    snprintf(out + at, 64 - at, "%s", access->elements > 1 ? "}" : "");
}

static int write_tail(char *out, size_t size)
{
    return snprintf(out, size, "membar.sys;\nld.volatile.global.u32 %%r1, [%%d4+%u]; setp.eq.u32 %%p, %%r1, 0; @%%p bra again;\n", STOP);
}

/* Stores one pattern, then the other, with a fence after each. */
static void write_writer(const struct access *access, char *out, size_t size)
{
    const unsigned bits = register_bits(access);
    size_t at = (size_t)write_head("alternates", access, true, out, size);
    char a[64], b[64];

    write_list(access, "%a", false, a);
    write_list(access, "%b", false, b);
    at += (size_t)snprintf(out + at, size - at, "mov.u%u %%a, %s; mov.u%u %%b, -1;\n", bits, access->first, bits);
    if (is_joined(access)) {
        at += (size_t)snprintf(out + at, size - at, "mov.b128 %%q0, %s; mov.b128 %%q1, %s;\n", a, b);
        snprintf(a, sizeof a, "%%q0");
        snprintf(b, sizeof b, "%%q1");
    }
    at +=
        (size_t)snprintf(out + at, size - at, "again:\n%s [%%d1], %s;\nmembar.sys;\n%s [%%d1], %s;\n", access->store, a, access->store, b);
    at += (size_t)write_tail(out + at, size - at);
    snprintf(out + at, size - at, "ret;\n}\n");
}

/* %p: element i is neither all zeros nor all ones. */
static int write_check(const struct access *access, unsigned i, char *out, size_t size)
{
    const unsigned bits = register_bits(access);
    const char *ones = access->element_bytes == 1 ? "0xff" : bits == 16 ? "0xffff" : "-1";

    return snprintf(out, size, "setp.ne.u%u %%p, %%e%u, 0; setp.ne.and.u%u %%p, %%e%u, %s, %%p;\n", bits, i, bits, i, ones);
}

/* Counts how often the first element has changed, and how often an element is neither all zeros nor all ones, or differs from the first one
 * of the `unit` bytes to which it belongs. */
static void write_reader(const struct access *access, unsigned unit, bool own, char *out, size_t size)
{
    const unsigned bits = register_bits(access), each = unit / access->element_bytes;
    size_t at = (size_t)write_head("looks", access, own, out, size);
    char list[64];

    write_list(access, "%e", true, list);
    at += (size_t)snprintf(out + at, size - at,
                           "mov.u32 %%r2, 0; mov.u32 %%r4, 0; mov.u%u %%o, 0; mul.wide.u32 %%d3, %%r3, 8; add.u64 %%d2, %%d4, %%d3;\n"
                           "again:\n%s %s, [%%d1];\n",
                           bits, access->load, is_joined(access) ? "%q0" : list);
    if (is_joined(access))
        at += (size_t)snprintf(out + at, size - at, "mov.b128 %s, %%q0;\n", list);
    for (unsigned i = 0; i < access->elements; i++) {
        at += (size_t)write_check(access, i, out + at, size - at);
        if (i % each)
            at += (size_t)snprintf(out + at, size - at, "setp.ne.or.u%u %%p, %%e%u, %%e%u, %%p;\n", bits, i, i / each * each);
        at += (size_t)snprintf(out + at, size - at, "@%%p add.u32 %%r2, %%r2, 1;\n");
    }
    at += (size_t)snprintf(
        out + at, size - at,
        "setp.ne.u%u %%p, %%o, %%e0; @%%p add.u32 %%r4, %%r4, 1; @%%p st.volatile.global.u32 [%%d2+%u], %%r4; mov.b%u %%o, %%e0;\n", bits,
        TOLD, bits);
    at += (size_t)write_tail(out + at, size - at);
    snprintf(out + at, size - at, "st.global.u32 [%%d2+%u], %%r2;\nret;\n}\n", TOLD + 4);
}

/* ---- the host's side ---- */

typedef unsigned long long pair __attribute__((vector_size(16)));

/* One load and one store of the size. x86-64 processors with AVX transfer 16 aligned bytes at once (Intel SDM 3A, 9.1.1; AMD documents the
 * same). */
static void move_once(volatile void *to, const volatile void *from, unsigned bytes)
{
    switch (bytes) {
    case 1:
        *(volatile uint8_t *)to = *(const volatile uint8_t *)from;
        break;
    case 2:
        *(volatile uint16_t *)to = *(const volatile uint16_t *)from;
        break;
    case 4:
        *(volatile uint32_t *)to = *(const volatile uint32_t *)from;
        break;
    case 8:
        *(volatile uint64_t *)to = *(const volatile uint64_t *)from;
        break;
    default:
        *(volatile pair *)to = *(const volatile pair *)from;
        break;
    }
}

/* Each `unit` of the bytes is all zeros or all ones. */
static bool is_whole(const unsigned char *loaded, unsigned bytes, unsigned unit)
{
    for (unsigned i = 0; i < bytes; i++)
        if ((loaded[i] != 0 && loaded[i] != 0xff) || loaded[i] != loaded[i / unit * unit])
            return false;
    return true;
}

static volatile uint32_t *word_at(char *host, unsigned offset)
{
    return (volatile uint32_t *)(void *)(host + offset);
}

struct session {
    CUmodule module;
    struct timespec begin;
};

/* Launches the only kernel of a text on the slots in `host`. */
static void begin(struct session *session, const char *text, const char *name, char *host, unsigned threads)
{
    CUfunction function;
    CUdeviceptr places;

    memset(host, 0, 4096);
    ok(cuMemHostGetDevicePointer(&places, host, 0));
    ok(cuModuleLoadData(&session->module, text));
    ok(cuModuleGetFunction(&function, session->module, name));
    ok(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, (void *[]){&places}, NULL));
    clock_gettime(CLOCK_MONOTONIC, &session->begin);
}

/* Whether to continue after this number of changes. */
static bool should_continue(const struct session *session, unsigned changes)
{
    struct timespec now;
    long ms;

    clock_gettime(CLOCK_MONOTONIC, &now);
    ms = (now.tv_sec - session->begin.tv_sec) * 1000 + (now.tv_nsec - session->begin.tv_nsec) / 1000000;
    return cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY && ms < LIMIT_MS && changes < CHANGES && (ms < ENOUGH_MS || !changes);
}

static void end(struct session *session, char *host)
{
    *word_at(host, STOP) = 1;
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(session->module));
}

/* The host loads while a kernel stores: returns how many of its loads contained parts of two stores. */
static unsigned count_torn_stores(const struct access *access, char *host)
{
    const unsigned bytes = bytes_of(access), unit = bytes < single_bytes() ? bytes : single_bytes();
    _Alignas(16) unsigned char loaded[PLACE_BYTES];
    unsigned char before[THREADS] = {0};
    unsigned torn = 0, changes = 0;
    struct session session;
    char text[4096];

    write_writer(access, text, sizeof text);
    begin(&session, text, "alternates", host, THREADS);
    while (should_continue(&session, changes))
        for (unsigned i = 0; i < 1000; i++) {
            move_once(loaded, host + i % THREADS * PLACE_BYTES, bytes);
            torn += !is_whole(loaded, bytes, unit);
            changes += loaded[0] != before[i % THREADS];
            before[i % THREADS] = loaded[0];
        }
    end(&session, host);
    assert_true(changes > 0);
    return torn;
}

static void stores_are_single(const struct access *rows, size_t count)
{
    char *host;

    ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    for (size_t i = 0; i < count; i++) {
        const unsigned torn = is_refused(&rows[i]) ? 0 : count_torn_stores(&rows[i], host);

        if (torn)
            fail_msg("%s: %u torn", rows[i].name, torn);
    }
    ok(cuMemFreeHost(host));
}

static void aligned_stores_are_single(void **state)
{
    (void)state;
    stores_are_single(accesses, N_ACCESSES);
}

static void stores_of_atomics_are_single(void **state)
{
    (void)state;
    stores_are_single(atomics, N_ATOMICS);
}

/* The host stores while a kernel loads. */
static unsigned count_torn_loads(const struct access *access, bool own, char *host)
{
    static const pair patterns[2] = {{0, 0}, {UINT64_MAX, UINT64_MAX}};
    const unsigned bytes = bytes_of(access), threads = own ? THREADS : 1;
    struct session session;
    unsigned torn = 0;
    char text[4096];

    write_reader(access, single_bytes(), own, text, sizeof text);
    begin(&session, text, "looks", host, threads);
    while (should_continue(&session, *word_at(host, TOLD)))
        for (unsigned i = 0; i < 1000; i++)
            move_once(host + i % threads * PLACE_BYTES, &patterns[i / threads & 1], bytes);
    end(&session, host);
    assert_true(*word_at(host, TOLD) > 0);
    for (unsigned i = 0; i < threads; i++)
        torn += *word_at(host, TOLD + 8 * i + 4);
    return torn;
}

/* Each thread uses its own slot, or all use one slot that a parameter selects: drivers load once for all threads there. */
static void aligned_loads_are_single(void **state)
{
    char *host;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    for (size_t i = 0; i < N_ACCESSES; i++)
        for (int own = accesses[i].elements == 1; own < 2; own++) {
            const unsigned torn = is_refused(&accesses[i]) ? 0 : count_torn_loads(&accesses[i], own, host);

            if (torn)
                fail_msg("%s%s: %u torn", accesses[i].name, own ? "" : ", all in one place", torn);
        }
    ok(cuMemFreeHost(host));
}

/* A kernel whose accesses are not single must be rejected. */
static void what_would_be_torn_is_refused(void **state)
{
    CUdeviceptr places = 0;
    CUfunction function;
    CUmodule module;
    char text[4096];

    (void)state;
    for (size_t i = 0; i < N_ACCESSES; i++) {
        if (!is_refused(&accesses[i]))
            continue;
        write_writer(&accesses[i], text, sizeof text);
        ok(cuModuleLoadData(&module, text));
        ok(cuModuleGetFunction(&function, module, "alternates"));
        gives(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&places}, NULL));
        ok(cuModuleUnload(module));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_stores_are_single),
        cmocka_unit_test(stores_of_atomics_are_single),
        cmocka_unit_test(aligned_loads_are_single),
        cmocka_unit_test(what_would_be_torn_is_refused),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
