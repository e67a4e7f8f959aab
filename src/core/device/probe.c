/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of a device's arithmetic. A kernel runs difficult cases of fma, division, roots and subnormals with the device's own
 * operations, if the backend's table of drivers calls them exact. An operation with a wrong result is replaced by the compiler's own
 * sequence from then on. A few cases prove nothing, so an operation is only used if the table calls it exact and the probe finds no error.
 * Exceptions are fma of drivers of which some versions and processors are known to have one (ct_device_info.unproven_fma), warps and elementary functions
 * (unproven_warps, unproven_functions, probe_warps.c, probe_functions.c).
 *
 * The probe runs when the first kernel is compiled, so programs without kernels do not pay for it, and its result is cached on disk. */
#include "probe.h"

#include "probe_job.h"
#include "core/base/config.h"
#include "context.h"
#include "workarounds.h"
#include "core/backing/flushing_threads.h"
#include "core/backing/kernel_faults.h"
#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "probe"

#define BLOCK_THREADS 32u
#define TEXT_BYTES 8192
#define WARPS (UINT32_C(1) << CT_PROBE_WARPS)
#define FMA (UINT32_C(1) << CT_PROBE_FMA32 | UINT32_C(1) << CT_PROBE_SUBNORMAL_FMA32 | UINT32_C(1) << CT_PROBE_FMA64)
#define FUNCTIONS ((uint32_t)PTX2SPV_NEAR_ALL << CT_PROBE_FUNCTIONS)

enum operation {
#define OPERATION(id, fact, width, text) OPERATION_##id,
#include "probe.def"
    OPERATION_COUNT
};

static const struct {
    enum ct_probe_fact fact;
    unsigned width;
    const char *text;
} operations[] = {
#define OPERATION(id, fact, width, text) {CT_PROBE_##fact, width, text},
#include "probe.def"
};

/* The kernel's representation of a case. */
struct item {
    uint64_t operation, operands[3], result;
};

static const struct probe_case {
    enum operation operation;
    uint64_t operands[3], want;
} cases[] = {
#define CASE(operation, a, b, c, want) {OPERATION_##operation, {a, b, c}, want},
#include "probe.def"
};
#define N_CASES (sizeof cases / sizeof *cases)
#define N_ITEMS ((N_CASES + BLOCK_THREADS - 1) / BLOCK_THREADS * BLOCK_THREADS)

static const char *const fact_names[] = {
#define FACT(id, member, name) name,
#include "probe.def"
};

/* The target's claims that can be probed. */
static uint32_t claims_of(const struct ptx2spv_target *target)
{
    uint32_t claims = 0;

#define FACT(id, member, name) claims |= (uint32_t)(target->member != 0) << CT_PROBE_##id;
#include "probe.def"
    if (target->fma32_flushes)
        claims &= ~(1u << CT_PROBE_SUBNORMAL_FMA32);
    if (!target->float16)
        claims &= ~(1u << CT_PROBE_FMA16);
    if (!target->float64) /* f64 is the compiler's own code */
        claims &= ~(1u << CT_PROBE_FMA64 | 1u << CT_PROBE_DIV64 | 1u << CT_PROBE_SQRT64 | 1u << CT_PROBE_REFINED64);
    return claims;
}

/* Clears the wrong claims and those that depend on them. */
static void take_back(struct ptx2spv_target *target, uint32_t wrong)
{
#define FACT(id, member, name)                                                                                                             \
    if (wrong >> CT_PROBE_##id & 1)                                                                                                        \
        target->member = 0;
#include "probe.def"
    target->refined_sqrt32 &= target->exact_fma32;
    target->guards_fma32 &= !(wrong >> CT_PROBE_FMA32 & 1);
    target->refined_roots64 &= !(wrong >> CT_PROBE_FMA64 & 1);
}

/* ---- the kernel ---- */

static const char kernel_head[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe(.param .u64 items)\n{\n"
    "  .reg .pred %p, %q;\n  .reg .b32 %i<4>;\n  .reg .b64 %at, %what, %operand<3>, %result;\n"
    "  ld.param.u64 %at, [items];\n  mov.u32 %i0, %ctaid.x;\n  mov.u32 %i1, %ntid.x;\n  mov.u32 %i2, %tid.x;\n"
    "  mad.lo.u32 %i0, %i0, %i1, %i2;\n  mul.wide.u32 %what, %i0, 40;\n  add.u64 %at, %at, %what;\n  ld.global.u64 %what, [%at];\n"
    "  ld.global.u64 %operand0, [%at+8];\n  ld.global.u64 %operand1, [%at+16];\n  ld.global.u64 %operand2, [%at+24];\n"
    "  mov.u64 %result, 0;\n";
static const char kernel_tail[] = "  st.global.u64 [%at+32], %result;\n  ret;\n}\n";

static size_t put_operation(char *text, size_t used, enum operation operation)
{
    const bool narrow = operations[operation].width == 32;

    return used +
           (size_t)snprintf(text + used, TEXT_BYTES - used,
                            "  setp.ne.u64 %%p, %%what, %u;\n  @%%p bra NOT%u;\n  {\n  .reg .b%u %%a, %%b, %%c, %%d;\n  .reg .b32 %%s;\n"
                            "  cvt.u%u.u64 %%a, %%operand0;\n  cvt.u%u.u64 %%b, %%operand1;\n  cvt.u%u.u64 %%c, %%operand2;\n  %s\n"
                            "  cvt.u64.u%u %%result, %%d;\n  }\nNOT%u:\n",
                            operation, operation, narrow ? 32 : 64, narrow ? 32 : 64, narrow ? 32 : 64, narrow ? 32 : 64,
                            operations[operation].text, narrow ? 32 : 64, operation);
}

static void write_kernel(char *text, uint32_t claims)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "%s", kernel_head);

    for (unsigned i = 0; i < OPERATION_COUNT; i++)
        if (claims >> operations[i].fact & 1)
            used = put_operation(text, used, (enum operation)i);
    snprintf(text + used, TEXT_BYTES - used, "%s", kernel_tail);
}

/* ---- arithmetic ---- */

static void write_items(struct item *items)
{
    for (size_t i = 0; i < N_ITEMS; i++) {
        items[i] = (struct item){.operation = OPERATION_COUNT};
        if (i < N_CASES) {
            items[i].operation = cases[i].operation;
            memcpy(items[i].operands, cases[i].operands, sizeof items[i].operands);
        }
    }
}

static uint32_t find_wrong(const struct item *items, uint32_t claims)
{
    uint32_t wrong = 0;

    for (size_t i = 0; i < N_CASES; i++) {
        const enum ct_probe_fact fact = operations[cases[i].operation].fact;

        if (!(claims >> fact & 1) || items[i].result == cases[i].want)
            continue;
        wrong |= 1u << fact;
        ct_log(CT_LOG_DEBUG, "%s of %llx %llx %llx gave %llx instead of %llx", fact_names[fact], (unsigned long long)items[i].operands[0],
               (unsigned long long)items[i].operands[1], (unsigned long long)items[i].operands[2], (unsigned long long)items[i].result,
               (unsigned long long)cases[i].want);
    }
    return wrong;
}

static CUresult run_cases(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                          uint32_t claims, uint32_t *out_wrong)
{
    struct item items[N_ITEMS];
    char text[TEXT_BYTES];
    const struct ct_probe_job job = {.text = text,
                                     .blocks = N_ITEMS / BLOCK_THREADS,
                                     .threads = BLOCK_THREADS,
                                     .input = items,
                                     .output = items,
                                     .size_bytes = sizeof items};
    CUresult r;

    write_kernel(text, claims);
    write_items(items);
    r = ct_probe_execute(backend, opened, target, &job);
    if (r == CUDA_SUCCESS)
        *out_wrong = find_wrong(items, claims);
    return r;
}

/* Subnormals are flushed in a kernel of their own, since every operation of such a kernel has .ftz (ptx2spv/exact/flush_mode.c). */
CUresult ct_probe_run(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                      uint32_t *out_wrong)
{
    const uint32_t claims = claims_of(target), flush = UINT32_C(1) << CT_PROBE_FLUSH32;
    uint32_t wrong = 0, wrong_flush = 0;
    CUresult r = CUDA_SUCCESS;

    if (claims & ~flush)
        r = run_cases(backend, opened, target, claims & ~flush, &wrong);
    if (r == CUDA_SUCCESS && claims & flush)
        r = run_cases(backend, opened, target, flush, &wrong_flush);
    if (r == CUDA_SUCCESS)
        *out_wrong = wrong | wrong_flush;
    return r;
}

/* ---- once for each device ---- */

static const char *const functions[PTX2SPV_NEAR_COUNT] = {"ex2", "lg2", "sin or cos", "rsqrt", "sqrt"}; /* enum ptx2spv_near */

static void report(const struct ct_device *device, uint32_t wrong)
{
    const uint32_t flush = UINT32_C(1) << CT_PROBE_FLUSH32, presumed = device->info.unproven_fma ? wrong & FMA : 0;
    const uint32_t inexact = wrong & ~(flush | presumed);

    for (unsigned i = 0; i < CT_PROBE_FACT_COUNT; i++)
        if (inexact >> i & 1)
            ct_log(CT_LOG_WARN, "device %d: the native %s is not exact, contrary to the table for %s; it is emulated", device->ordinal,
                   fact_names[i], device->info.driver);
    if (presumed)
        ct_log(CT_LOG_INFO, "device %d: %s has no fma that rounds once; it is emulated", device->ordinal, device->info.driver);
    if (wrong & flush) /* no table says that it does */
        ct_log(CT_LOG_INFO, "device %d: %s does not flush subnormal f32 as CUDA does; .ftz is emulated", device->ordinal,
               device->info.driver);
    for (unsigned i = 0; i < PTX2SPV_NEAR_COUNT; i++)
        if (wrong >> (CT_PROBE_FUNCTIONS + i) & 1)
            ct_log(CT_LOG_INFO, "device %d: %s of %s is less precise than PTX allows; multiply-adds compute it", device->ordinal,
                   functions[i], device->info.driver);
    if (wrong & WARPS)
        ct_log(CT_LOG_WARN, "device %d: %s shuffles or votes wrongly in divergent code; warps exchange through shared memory",
               device->ordinal, device->info.driver);
}

/* The claims that can be probed and are not excluded by options. */
static uint32_t claims_to_test(const struct ct_device_info *info)
{
    const bool tests_arithmetic = strcmp(ct_config()->math, "fast") != 0;
    const bool tests_warps = info->unproven_warps && info->target.warp_form == PTX2SPV_WARP_NATIVE;
    uint32_t claims = tests_warps ? WARPS : 0;

    if (!ct_config()->probe)
        return 0;
    if (tests_arithmetic)
        claims |= claims_of(&info->target) | (info->unproven_functions ? FUNCTIONS : 0);
    return claims;
}

/* Warps that could not be probed count as wrong, since nothing is known about them. The cache says so until the result is known, for the
 * next process in case the driver crashes this one. */
static uint32_t probe_warps(struct ct_device *device, struct ct_backend_device *opened, uint32_t tested, uint32_t wrong)
{
    bool is_right = false;

    ct_probe_cache_write(&device->info, tested, wrong | WARPS);
    if (ct_probe_warps(device->backend, opened, &device->info.target, &is_right) != CUDA_SUCCESS)
        ct_log(CT_LOG_INFO, "the warps of device %d could not be probed", device->ordinal);
    return is_right ? wrong : wrong | WARPS;
}

static uint32_t all_functions_but(uint32_t near)
{
    return FUNCTIONS & ~(near << CT_PROBE_FUNCTIONS);
}

/* After the arithmetic, since the kernel relies on it. */
static CUresult probe_functions(const struct ct_device *device, struct ct_backend_device *opened, uint32_t *wrong)
{
    struct ptx2spv_target target = device->info.target;
    uint32_t near = target.near_functions;
    CUresult r;

    take_back(&target, *wrong);
    r = ct_probe_functions(device->backend, opened, &target, &near);
    *wrong = (*wrong & ~FUNCTIONS) | all_functions_but(near);
    return r;
}

/* False: something could not be probed. */
static bool probe(struct ct_device *device, struct ct_backend_device *opened, uint32_t tested, uint32_t *out_wrong)
{
    CUresult r = CUDA_SUCCESS;

    if (tested & ~(WARPS | FUNCTIONS))
        r = ct_probe_run(device->backend, opened, &device->info.target, out_wrong);
    if (r == CUDA_SUCCESS && tested & FUNCTIONS)
        r = probe_functions(device, opened, out_wrong);
    if (r != CUDA_SUCCESS)
        ct_log(CT_LOG_INFO, "device %d could not be probed (error %d): the table of drivers is used", device->ordinal, (int)r);
    if (tested & WARPS)
        *out_wrong = probe_warps(device, opened, tested, *out_wrong);
    return r == CUDA_SUCCESS;
}

static void settle(struct ct_device *device, struct ct_backend_device *opened)
{
    struct ct_device_info *info = &device->info;
    const uint32_t tested = claims_to_test(info);
    /* what is presumed, if nothing can be measured */
    uint32_t wrong = (tested & all_functions_but(info->target.near_functions)) | (info->unproven_fma ? claims_of(&info->target) & FMA : 0);

    if (tested && !ct_probe_cache_read(info, tested, &wrong) && probe(device, opened, tested, &wrong))
        ct_probe_cache_write(info, tested, wrong);
    report(device, wrong);
    take_back(&info->target, wrong);
    if (tested & FUNCTIONS)
        info->target.near_functions = PTX2SPV_NEAR_ALL & ~(wrong >> CT_PROBE_FUNCTIONS);
    if (info->unproven_warps && (wrong & WARPS || !(tested & WARPS)))
        info->target.warp_form = PTX2SPV_WARP_COLLECTIVE;
    ct_probe_matrices(device->backend, opened, info);
}

/* Without the handler of faults, and where it does not help, the workaround is not in force. */
static void keep_subnormals(struct ct_device *device, struct ct_backend_device *opened)
{
    if (device->info.workarounds & CT_WORKAROUND(FLUSHING_THREADS) &&
        !(ct_kernel_faults_take_over_again() && ct_flushing_threads_mend(device, opened)))
        device->info.workarounds &= ~CT_WORKAROUND(FLUSHING_THREADS);
}

void ct_probe_ensure(struct ct_device *device, struct ct_backend_device *opened)
{
    if (!ct_once_begin(&device->probed, &device->lock))
        return;
    if (device->info.target.splits_fma32)
        ct_log(CT_LOG_WARN,
               "device %d: it has no fma that rounds once; a product and a sum take its place, except where results depend on the single "
               "rounding. CUTTLE_MATH=exact computes all exactly, many times slower (docs/devices.md)",
               device->ordinal);
    keep_subnormals(device, opened);
    settle(device, opened);
    ct_once_end(&device->probed, &device->lock, true);
}
