/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options. CUDA passes a list of option numbers and a list of values, which are pointers, or numbers stored as pointers. */
#include "jit.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CT_CHANNEL "jit"

enum option_meaning {
    OPTION_IGNORED,     /* a hint to NVIDIA's compiler, without effect */
    OPTION_UNSUPPORTED, /* changes the meaning of a program: refused if it is requested */
    OPTION_HANDLED,     /* handled in take_option */
};

/* Hints accept any value, as NVIDIA's driver 580 accepts an optimization level of 5. */
static const struct {
    const char *name;
    enum option_meaning meaning;
} options_known[CU_JIT_NUM_OPTIONS] = {
#define ROW(name, meaning) [CU_JIT_##name] = {"CU_JIT_" #name, meaning}
    ROW(MAX_REGISTERS, OPTION_HANDLED),
    ROW(THREADS_PER_BLOCK, OPTION_IGNORED), /* any block fits: the requested number is also the result */
    ROW(WALL_TIME, OPTION_HANDLED),
    ROW(INFO_LOG_BUFFER, OPTION_HANDLED),
    ROW(INFO_LOG_BUFFER_SIZE_BYTES, OPTION_HANDLED),
    ROW(ERROR_LOG_BUFFER, OPTION_HANDLED),
    ROW(ERROR_LOG_BUFFER_SIZE_BYTES, OPTION_HANDLED),
    ROW(OPTIMIZATION_LEVEL, OPTION_IGNORED),
    ROW(TARGET_FROM_CUCONTEXT, OPTION_IGNORED),
    ROW(TARGET, OPTION_IGNORED), /* kernels are compiled for the device on which they run */
    ROW(FALLBACK_STRATEGY, OPTION_IGNORED),
    ROW(GENERATE_DEBUG_INFO, OPTION_IGNORED),
    ROW(LOG_VERBOSE, OPTION_HANDLED),
    ROW(GENERATE_LINE_INFO, OPTION_IGNORED),
    ROW(CACHE_MODE, OPTION_IGNORED),
    ROW(NEW_SM3X_OPT, OPTION_IGNORED),
    ROW(FAST_COMPILE, OPTION_IGNORED),
    ROW(GLOBAL_SYMBOL_NAMES, OPTION_UNSUPPORTED),
    ROW(GLOBAL_SYMBOL_ADDRESSES, OPTION_UNSUPPORTED),
    ROW(GLOBAL_SYMBOL_COUNT, OPTION_UNSUPPORTED),
    ROW(LTO, OPTION_UNSUPPORTED),
    ROW(FTZ, OPTION_IGNORED),      /* these four apply to link-time optimization only: */
    ROW(PREC_DIV, OPTION_IGNORED), /* in PTX each instruction specifies them */
    ROW(PREC_SQRT, OPTION_IGNORED),
    ROW(FMA, OPTION_IGNORED),
    ROW(REFERENCED_KERNEL_NAMES, OPTION_IGNORED), /* what the linker may remove; this one keeps everything */
    ROW(REFERENCED_KERNEL_COUNT, OPTION_IGNORED),
    ROW(REFERENCED_VARIABLE_NAMES, OPTION_IGNORED),
    ROW(REFERENCED_VARIABLE_COUNT, OPTION_IGNORED),
    ROW(OPTIMIZE_UNUSED_DEVICE_VARIABLES, OPTION_IGNORED),
    ROW(POSITION_INDEPENDENT_CODE, OPTION_IGNORED),
    ROW(MIN_CTA_PER_SM, OPTION_IGNORED),
    ROW(MAX_THREADS_PER_BLOCK, OPTION_IGNORED),
    ROW(OVERRIDE_DIRECTIVE_VALUES, OPTION_IGNORED),
    ROW(SPLIT_COMPILE, OPTION_IGNORED),
#undef ROW
};

static void take_option(struct ct_jit *jit, CUjit_option option, void **value)
{
    size_t number = (uintptr_t)*value & UINT32_MAX; /* options have the type unsigned int: the upper half of the pointer is undefined */

    switch ((int)option) {
    case CU_JIT_WALL_TIME:
        jit->wall_time = value;
        break;
    case CU_JIT_INFO_LOG_BUFFER:
        jit->info.buffer = *value;
        break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        jit->info.capacity = number;
        jit->info_size = value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER:
        jit->error.buffer = *value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        jit->error.capacity = number;
        jit->error_size = value;
        break;
    case CU_JIT_MAX_REGISTERS:
        jit->max_registers = (unsigned)number;
        break;
    case CU_JIT_LOG_VERBOSE:
        jit->verbose = number != 0;
        break;
    }
}

static CUresult check_option(CUjit_option option, const void *value)
{
    if ((unsigned)option >= CU_JIT_NUM_OPTIONS || !options_known[option].name)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "JIT option %d does not exist", (int)option);
    if (options_known[option].meaning == OPTION_UNSUPPORTED && value)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "JIT option %s is not supported", options_known[option].name);
    return CUDA_SUCCESS;
}

static bool has_option(unsigned count, const CUjit_option *options, CUjit_option option)
{
    for (unsigned i = 0; i < count; i++)
        if (options[i] == option)
            return true;
    return false;
}

CUresult ct_jit_init(struct ct_jit *jit, unsigned count, const CUjit_option *options, void **values)
{
    *jit = (struct ct_jit){0};
    clock_gettime(CLOCK_MONOTONIC, &jit->start);
    if (count && (!options || !values))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the list of %u JIT options is NULL", count);
    for (unsigned i = 0; i < count; i++) {
        CUresult r = check_option(options[i], values[i]);

        if (r != CUDA_SUCCESS)
            return r;
    }
    if (has_option(count, options, CU_JIT_TARGET) && has_option(count, options, CU_JIT_THREADS_PER_BLOCK))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "CU_JIT_TARGET and CU_JIT_THREADS_PER_BLOCK are mutually exclusive");
    for (unsigned i = 0; i < count; i++)
        take_option(jit, options[i], &values[i]);
    if (!jit->info.buffer)
        jit->info.capacity = 0;
    if (!jit->error.buffer)
        jit->error.capacity = 0;
    return CUDA_SUCCESS;
}

/* Appends as much as fits; the buffer always ends with NUL. */
static void append(struct ct_jit_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(struct ct_jit_log *log, const char *format, ...)
{
    va_list arguments;
    size_t room = log->capacity - log->length;
    int n;

    if (!log->capacity)
        return;
    va_start(arguments, format);
    n = vsnprintf(log->buffer + log->length, room, format, arguments);
    va_end(arguments);
    if (n > 0)
        log->length += (size_t)n < room ? (size_t)n : room - 1;
}

void ct_jit_inform(struct ct_jit *jit, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    append(&jit->info, "info    : %s\n", text);
}

/* For ptx2spv_options: user is the struct ct_jit, which may be NULL (diagnostics are then only logged). */
static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    static const char *const severities[] = {
        [PTX2SPV_ERROR] = "error   ",
        [PTX2SPV_WARNING] = "warning ",
        [PTX2SPV_INFO] = "info    ",
    };
    struct ct_jit *jit = user;
    bool is_error = diagnostic->severity == PTX2SPV_ERROR;

    if (jit) {
        struct ct_jit_log *log = is_error ? &jit->error : &jit->info;

        if (diagnostic->line)
            append(log, "ptx %s, line %u, column %u; %s: %s\n", diagnostic->name ? diagnostic->name : "application ptx input",
                   diagnostic->line, diagnostic->column, severities[diagnostic->severity], diagnostic->text);
        else
            append(log, "%s: %s\n", severities[diagnostic->severity], diagnostic->text);
    }
    /* errors that the program can read in its log buffer are only logged at level INFO */
    ct_log(is_error && !(jit && jit->error.capacity) ? CT_LOG_WARN : CT_LOG_INFO, "line %u, column %u: %s", diagnostic->line,
           diagnostic->column, diagnostic->text);
}

static void finish_log(const struct ct_jit_log *log, void **size)
{
    if (log->capacity)
        log->buffer[log->length] = 0;
    if (size)
        *size = (void *)(uintptr_t)log->length;
}

void ct_jit_finish(struct ct_jit *jit)
{
    struct timespec now;
    float milliseconds;

    finish_log(&jit->info, jit->info_size);
    finish_log(&jit->error, jit->error_size);
    if (!jit->wall_time)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    milliseconds = (float)((double)(now.tv_sec - jit->start.tv_sec) * 1e3 + (double)(now.tv_nsec - jit->start.tv_nsec) / 1e6);
    *jit->wall_time = NULL;
    memcpy(jit->wall_time, &milliseconds, sizeof milliseconds); /* a float in the place of a pointer, as CUDA specifies */
}

CUresult ct_jit_result(enum ptx2spv_status status)
{
    switch (status) {
    case PTX2SPV_OK:
        return CUDA_SUCCESS;
    case PTX2SPV_INVALID_PTX:
    case PTX2SPV_UNDEFINED:
        return CUDA_ERROR_INVALID_PTX;
    case PTX2SPV_MULTIPLY_DEFINED:
        return CUDA_ERROR_INVALID_SOURCE; /* as NVIDIA's linker returns */
    case PTX2SPV_UNSUPPORTED:
    case PTX2SPV_TARGET_LACKS:
        return CUDA_ERROR_NOT_SUPPORTED;
    case PTX2SPV_UNSUPPORTED_VERSION:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case PTX2SPV_NOT_FOUND:
        return CUDA_ERROR_NOT_FOUND;
    case PTX2SPV_OUT_OF_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case PTX2SPV_INTERNAL:
        return CUDA_ERROR_UNKNOWN;
    }
    return CUDA_ERROR_UNKNOWN;
}

static void print_dump(void *user, const char *pass, const char *text)
{
    (void)user;
    fprintf(stderr, "; after %s\n%s\n", pass, text);
}

struct ptx2spv_options ct_jit_compiler_options(struct ct_jit *jit_or_null)
{
    const char *dump = ct_config()->dump;

    return (struct ptx2spv_options){
        .on_diagnostic = on_diagnostic,
        .on_dump = *dump ? print_dump : NULL,
        .user = jit_or_null,
        .dump = *dump ? dump : NULL,
    };
}
