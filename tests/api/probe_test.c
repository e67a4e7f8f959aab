/* SPDX-License-Identifier: Apache-2.0 */
/* The start-up probe: its cases compared with the host's C library, its result for a device that claims more than it can do, and its
 * results in the cache on disk. */
#include "chosen_backend.h"
#include "core/device/context.h"
#include "core/device/probe.h"
#include "core/device/workarounds.h"
#include "../float_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the cases ---- */

enum operation {
#define OPERATION(id, fact, width, text) OPERATION_##id,
#include "core/device/probe.def"
};

static const struct {
    enum operation operation;
    uint64_t a, b, c, want;
} cases[] = {
#define CASE(operation, a, b, c, want) {OPERATION_##operation, a, b, c, want},
#include "core/device/probe.def"
};

static float flushed_of(uint64_t bits)
{
    return flushed(f32_of(bits));
}

/* f16 by integers: a multiple of 2^-24, so that a product is one of 2^-48. */
static __int128 units_of_f16(uint64_t bits)
{
    const uint64_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    const __int128 magnitude = exponent ? (__int128)(fraction | 0x400) << (exponent - 1) : (__int128)fraction;

    return bits >> 15 & 1 ? -magnitude : magnitude;
}

static uint64_t fused_f16(uint64_t a, uint64_t b, uint64_t c)
{
    const __int128 sum = units_of_f16(a) * units_of_f16(b) + units_of_f16(c) * (1 << 24), magnitude = sum < 0 ? -sum : sum;
    const uint64_t sign = sum ? (sum < 0) : ((a ^ b) & c) >> 15; /* of a zero: the cases cancel nothing */
    unsigned shift = 24;
    __int128 result, rest;

    while (magnitude >> shift >= 0x800)
        shift++;
    result = magnitude >> shift;
    rest = (magnitude - (result << shift)) * 2 - ((__int128)1 << shift);
    result += rest > 0 || (rest == 0 && (result & 1));
    result += (__int128)(shift - 24) << 10;
    return sign << 15 | (uint64_t)(result < 0x7c00 ? result : 0x7c00);
}

static uint64_t by_the_host(enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
    volatile float product;

    switch (operation) {
    case OPERATION_FMA16:
        return fused_f16(a, b, c);
    case OPERATION_FMA32:
    case OPERATION_SUBNORMAL_FMA32:
        return bits_of_f32(fmaf(f32_of(a), f32_of(b), f32_of(c)));
    case OPERATION_NEAR32:
        product = f32_of(a) * f32_of(b);
        return bits_of_f32(fmaf(f32_of(a), f32_of(b), -product));
    case OPERATION_FMA64:
        return bits_of_f64(fma(f64_of(a), f64_of(b), f64_of(c)));
    case OPERATION_QUOTIENT32:
    case OPERATION_DIV32:
        return bits_of_f32(f32_of(a) / f32_of(b));
    case OPERATION_DIV64:
        return bits_of_f64(f64_of(a) / f64_of(b));
    case OPERATION_ROOT32:
    case OPERATION_SQRT32:
    case OPERATION_REFINED32:
        return bits_of_f32(sqrtf(f32_of(a)));
    case OPERATION_SQRT64:
    case OPERATION_REFINED64:
        return bits_of_f64(sqrt(f64_of(a)));
    case OPERATION_INVERSE64:
        return bits_of_f64(1 / sqrt(f64_of(a)));
    case OPERATION_LEAST32:
        return f32_of(a) < f32_of(b) ? a : b;
    case OPERATION_LESS32:
        return f32_of(a) < f32_of(b);
    case OPERATION_WIDEN32:
        return bits_of_f64((double)f32_of(a));
    case OPERATION_FLUSHED_SUM32:
        return bits_of_f32(flushed(flushed_of(a) + flushed_of(b)));
    case OPERATION_FLUSHED_PRODUCT32:
        return bits_of_f32(flushed(flushed_of(a) * flushed_of(b)));
    case OPERATION_FLUSHED_FMA32:
        return bits_of_f32(flushed(fmaf(flushed_of(a), flushed_of(b), flushed_of(c))));
    case OPERATION_FLUSHED_LESS32:
        return flushed_of(a) < flushed_of(b);
    case OPERATION_FLUSHED_INVERSE32:
        return bits_of_f32(flushed(1 / flushed_of(a)));
    }
    return 0;
}

static void test_cases_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (by_the_host(cases[i].operation, cases[i].a, cases[i].b, cases[i].c) != cases[i].want)
            fail_msg("case %zu: %llx %llx %llx", i, (unsigned long long)cases[i].a, (unsigned long long)cases[i].b,
                     (unsigned long long)cases[i].c);
}

/* ---- a device ---- */

/* The properties that its backend claims for a device pass; the claim that everything is exact does not, on devices that round a fused
 * operation twice. */
static void test_device_is_probed(void **state)
{
    const struct ct_backend *backend = backend_of_environment();
    const struct ct_device_info *infos;
    struct ct_backend_device *device;
    struct ptx2spv_target target;
    uint32_t wrong = ~0u;
    unsigned count;

    (void)state;
    assert_int_equal(backend->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count || (infos[0].workarounds & CT_WORKAROUND(FLUSHING_THREADS))) /* which only the library's own devices have in force */
        skip();
    assert_int_equal(backend->device_open(0, &device), CUDA_SUCCESS);
    target = infos[0].target;
    assert_int_equal(ct_probe_run(backend, device, &target, &wrong), CUDA_SUCCESS);
    assert_int_equal(wrong, 0);
    if (strstr(infos[0].name, "llvmpipe")) { /* its Fma is a product and a sum: drivers.def */
        target.exact_fma16 = target.exact_fma32 = target.exact_fma64 = 1;
        assert_int_equal(ct_probe_run(backend, device, &target, &wrong), CUDA_SUCCESS);
        assert_int_equal(wrong, 1u << CT_PROBE_FMA16 | 1u << CT_PROBE_FMA32 | 1u << CT_PROBE_SUBNORMAL_FMA32 | 1u << CT_PROBE_FMA64);
        target.exact_fma16 = target.exact_fma32 = target.exact_fma64 = 0;
        target.refined_roots64 = 1;
        assert_int_equal(ct_probe_run(backend, device, &target, &wrong), CUDA_SUCCESS);
        assert_int_equal(wrong, 0);
        target.exact_fma64 = 1; /* with its Fma the fused steps cannot be right */
        assert_int_equal(ct_probe_run(backend, device, &target, &wrong), CUDA_SUCCESS);
        assert_true(wrong >> CT_PROBE_REFINED64 & 1);
    }
    backend->device_close(device);
}

/* ---- warps ---- */

/* Native warps of 32 lanes work where the backend's table claims them (Intel's OpenCL runtime; NVIDIA), and do not work where subgroups
 * have fewer lanes (lavapipe: 8). */
static void test_warps_are_probed(void **state)
{
    const struct ct_backend *backend = backend_of_environment();
    const struct ct_device_info *infos;
    struct ct_backend_device *device;
    struct ptx2spv_target target;
    bool is_right = false;
    unsigned count;

    (void)state;
    assert_int_equal(backend->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count)
        skip();
    target = infos[0].target;
    if (target.warp_form != PTX2SPV_WARP_NATIVE && !strstr(infos[0].name, "llvmpipe"))
        skip(); /* PoCL ends the process for some of the kernels */
    assert_int_equal(backend->device_open(0, &device), CUDA_SUCCESS);
    if (target.warp_form == PTX2SPV_WARP_NATIVE) {
        assert_int_equal(ct_probe_warps(backend, device, &target, &is_right), CUDA_SUCCESS);
        assert_true(is_right);
    }
    target.warp_form = PTX2SPV_WARP_COLLECTIVE; /* so the kernel and its expected results are right */
    assert_int_equal(ct_probe_warps(backend, device, &target, &is_right), CUDA_SUCCESS);
    assert_true(is_right);
    if (infos[0].target.warp_form != PTX2SPV_WARP_NATIVE) {
        target.warp_form = PTX2SPV_WARP_NATIVE;
        target.subgroup_size = 32;
        assert_int_equal(ct_probe_warps(backend, device, &target, &is_right), CUDA_SUCCESS);
        assert_false(is_right);
    }
    backend->device_close(device);
}

static int make_folder(void **state);
static int remove_folder(void **state);

/* The target of a device as core represents it, after its probe. */
static struct ptx2spv_target probed(struct ct_device_info info)
{
    const struct ct_backend *backend = backend_of_environment();
    struct ct_device device = {.backend = backend, .info = info};
    struct ct_backend_device *opened;

    ct_mutex_init(&device.lock, CT_RANK_DEVICE);
    ct_once_init(&device.probed);
    assert_int_equal(backend->device_open(0, &opened), CUDA_SUCCESS);
    ct_probe_ensure(&device, opened);
    backend->device_close(opened);
    ct_once_destroy(&device.probed);
    ct_mutex_finish(&device.lock);
    return device.info.target;
}

/* An unknown driver that claims native warps. */
static bool keeps_native_warps(struct ct_device_info info)
{
    info.unproven_warps = true;
    info.target.warp_form = PTX2SPV_WARP_NATIVE;
    info.target.subgroup_size = 32;
    return probed(info).warp_form == PTX2SPV_WARP_NATIVE;
}

static void test_wrong_warps_become_collective(void **state)
{
    const struct ct_device_info *infos;
    unsigned count;
    bool is_native;

    (void)state;
    assert_int_equal(backend_of_environment()->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count || (infos[0].target.warp_form != PTX2SPV_WARP_NATIVE && !strstr(infos[0].name, "llvmpipe")))
        skip();
    is_native = infos[0].target.warp_form == PTX2SPV_WARP_NATIVE;
    assert_int_equal(keeps_native_warps(infos[0]), is_native);
    assert_int_equal(keeps_native_warps(infos[0]), is_native); /* from the cache */
}

/* ---- fused multiply-add ---- */

/* A driver that may have fused operations keeps them if it has: lavapipe of Mesa 25.0 has none, the OpenCL runtimes have. The answer is the same from the
 * cache. */
static void test_unproven_fma_is_confirmed(void **state)
{
    const struct ct_device_info *infos;
    struct ct_device_info info;
    unsigned count;

    (void)state;
    assert_int_equal(backend_of_environment()->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count || infos[0].kind != CT_DEVICE_CPU || infos[0].unproven_fma)
        skip();
    info = infos[0];
    info.unproven_fma = true;
    info.target.exact_fma32 = info.target.exact_fma64 = 1;
    for (unsigned i = 0; i < 2; i++) {
        const struct ptx2spv_target target = probed(info);

        assert_int_equal(target.exact_fma32, infos[0].target.exact_fma32);
        assert_int_equal(target.exact_fma64, infos[0].target.exact_fma64);
    }
}

/* ---- elementary functions ---- */

/* Lavapipe's exponential has an error of 2^-21.9; all functions of the OpenCL runtimes are precise. */
static uint32_t precise_functions(const struct ct_device_info *info)
{
    return strstr(info->name, "llvmpipe") ? PTX2SPV_NEAR_ALL & ~(uint32_t)PTX2SPV_NEAR_EX2 : PTX2SPV_NEAR_ALL;
}

static void test_functions_are_measured(void **state)
{
    const struct ct_backend *backend = backend_of_environment();
    const struct ct_device_info *infos;
    struct ct_backend_device *device;
    uint32_t near = 0;
    unsigned count;

    (void)state;
    assert_int_equal(backend->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count || infos[0].kind != CT_DEVICE_CPU)
        skip();
    assert_int_equal(backend->device_open(0, &device), CUDA_SUCCESS);
    assert_int_equal(ct_probe_functions(backend, device, &infos[0].target, &near), CUDA_SUCCESS);
    assert_int_equal(near, precise_functions(&infos[0]));
    backend->device_close(device);
}

/* What a driver without a row in the table claims is replaced by what it does, which the cache keeps. */
static void test_unproven_functions_are_measured(void **state)
{
    const struct ct_device_info *infos;
    struct ct_device_info info;
    unsigned count;

    (void)state;
    assert_int_equal(backend_of_environment()->enumerate(&infos, &count), CUDA_SUCCESS);
    if (!count || infos[0].kind != CT_DEVICE_CPU)
        skip();
    info = infos[0];
    info.unproven_functions = true;
    info.target.near_functions = PTX2SPV_NEAR_EX2;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(probed(info).near_functions, precise_functions(&info));
    info.unproven_functions = false;
    assert_int_equal(probed(info).near_functions, PTX2SPV_NEAR_EX2);
}

/* ---- the cache ---- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cuttle-probe-XXXXXX");
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const struct ct_device_info some_device = {.name = "some device", .driver = "driver 1.0", .uuid = {1, 2, 3}};

static void test_answer_is_kept(void **state)
{
    struct ct_device_info newer = some_device;
    uint32_t wrong = 77;

    (void)state;
    assert_false(ct_probe_cache_read(&some_device, 7, &wrong));
    assert_int_equal(wrong, 77);
    ct_probe_cache_write(&some_device, 7, 2);
    assert_true(ct_probe_cache_read(&some_device, 7, &wrong));
    assert_int_equal(wrong, 2);
    assert_false(ct_probe_cache_read(&some_device, 3, &wrong)); /* other claims */
    strcpy(newer.driver, "driver 1.1");
    assert_false(ct_probe_cache_read(&newer, 7, &wrong));
}

/* The one file in the folder besides the cache's tally. */
static void find_file(char *out, size_t size)
{
    char command[128];
    FILE *listing;

    snprintf(command, sizeof command, "echo %s/cuttle/[!t]*", folder);
    listing = popen(command, "r");
    assert_non_null(listing);
    assert_non_null(fgets(out, (int)size, listing));
    pclose(listing);
    out[strcspn(out, "\n")] = 0;
    assert_null(strchr(out, ' '));
}

static void test_damaged_answer_is_not_believed(void **state)
{
    unsigned char bytes[256], damaged[256];
    char path[256];
    uint32_t wrong;
    size_t n;
    FILE *file;

    (void)state;
    ct_probe_cache_write(&some_device, 7, 2);
    find_file(path, sizeof path);
    assert_non_null(file = fopen(path, "rb"));
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut <= n + 1; cut++) {
        assert_non_null(file = fopen(path, "wb"));
        memcpy(damaged, bytes, n);
        fwrite(damaged, 1, cut <= n ? cut : n, file);
        if (cut > n)
            fputc(0, file);
        fclose(file);
        assert_int_equal(ct_probe_cache_read(&some_device, 7, &wrong), cut == n);
    }
    for (size_t i = 0; i < n * 8; i++) {
        memcpy(damaged, bytes, n);
        damaged[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_non_null(file = fopen(path, "wb"));
        fwrite(damaged, 1, n, file);
        fclose(file);
        assert_false(ct_probe_cache_read(&some_device, 7, &wrong));
    }
}

static void test_many_processes(void **state)
{
    enum { PROCESSES = 8, ROUNDS = 50 };
    char path[256];

    (void)state;
    ct_probe_cache_write(&some_device, 7, 2);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork())
            continue;
        for (int k = 0; k < ROUNDS; k++) {
            uint32_t wrong = 0;

            ct_probe_cache_write(&some_device, 7, 2);
            if (!ct_probe_cache_read(&some_device, 7, &wrong) || wrong != 2)
                _exit(1);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    find_file(path, sizeof path); /* no other file is left */
}

static void test_nowhere_to_keep_it(void **state)
{
    uint32_t wrong;

    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/nowhere", 1), 0);
    ct_probe_cache_write(&some_device, 7, 2);
    assert_false(ct_probe_cache_read(&some_device, 7, &wrong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_are_right),
        cmocka_unit_test(test_device_is_probed),
        cmocka_unit_test(test_warps_are_probed),
        cmocka_unit_test_setup_teardown(test_wrong_warps_become_collective, make_folder, remove_folder),
        cmocka_unit_test(test_functions_are_measured),
        cmocka_unit_test_setup_teardown(test_unproven_fma_is_confirmed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_unproven_functions_are_measured, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_answer_is_kept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged_answer_is_not_believed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_many_processes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_nowhere_to_keep_it, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
