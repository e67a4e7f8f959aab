/* SPDX-License-Identifier: Apache-2.0 */
/* How the time and the memory of the compiler grow with the size of a kernel.
 * usage: bench_compile_growth [SHAPE [N]]
 *
 * Each shape is PTX of one kernel with n, 2n and 4n pieces of one kind. For each size the program prints the CPU time of the compilation
 * (the least of several runs) and the most memory that was allocated at once, and for each shape the two growth exponents: the exponent e
 * for which the time, or the memory, at 4n is 4^e times that at n; and by how much each piece adds to the memory. Linear code shows up to 1.5 in time where its memory outgrows a cache
 * between n and 4n.
 *
 * With COUNT_STEPS (the test ptx.growth) the compiler is instrumented, and the program counts the basic blocks that it executes and the
 * words that it copies and clears instead of measuring time. Then both exponents are the same in every run, and the exit status is 1 if one
 * is above EXPONENT_MAX, or if a piece takes more memory than its shape may. */
#include "cuttle/ptx2spv.h"

#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPONENT_MAX 1.2
enum { SIZES = 3 };
#ifdef COUNT_STEPS
enum { REPEATS = 1, DIVISOR = 2 }; /* smaller kernels: the instrumented compiler is slower */
#else
enum { REPEATS = 3, DIVISOR = 1 };
#endif

/* ---- memory ---- */

static struct {
    size_t now_bytes, most_bytes;
} heap;

void *__real_malloc(size_t size_bytes);
void *__real_calloc(size_t count, size_t size_bytes);
void *__real_realloc(void *memory, size_t size_bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t size_bytes);
void *__wrap_calloc(size_t count, size_t size_bytes);
void *__wrap_realloc(void *memory, size_t size_bytes);
void __wrap_free(void *memory);

static void *counted(void *memory)
{
    heap.now_bytes += memory ? malloc_usable_size(memory) : 0;
    heap.most_bytes = heap.now_bytes > heap.most_bytes ? heap.now_bytes : heap.most_bytes;
    return memory;
}

void *__wrap_malloc(size_t size_bytes)
{
    return counted(__real_malloc(size_bytes));
}

void *__wrap_calloc(size_t count, size_t size_bytes)
{
    return counted(__real_calloc(count, size_bytes));
}

void *__wrap_realloc(void *memory, size_t size_bytes)
{
    const size_t before_bytes = memory ? malloc_usable_size(memory) : 0;
    void *moved = __real_realloc(memory, size_bytes);

    if (moved)
        heap.now_bytes -= before_bytes;
    return counted(moved);
}

void __wrap_free(void *memory)
{
    heap.now_bytes -= memory ? malloc_usable_size(memory) : 0;
    __real_free(memory);
}

/* ---- time ---- */

#ifdef COUNT_STEPS
static uint64_t steps;
static const char unit[] = "millions of steps";

void __sanitizer_cov_trace_pc(void); /* -fsanitize-coverage=trace-pc: called in each basic block of the compiler */
void *__real_memset(void *to, int byte, size_t size_bytes);
void *__real_memcpy(void *to, const void *from, size_t size_bytes);
void *__real_memmove(void *to, const void *from, size_t size_bytes);
void *__wrap_memset(void *to, int byte, size_t size_bytes);
void *__wrap_memcpy(void *to, const void *from, size_t size_bytes);
void *__wrap_memmove(void *to, const void *from, size_t size_bytes);

void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

void *__wrap_memset(void *to, int byte, size_t size_bytes)
{
    steps += size_bytes / sizeof(uint64_t);
    return __real_memset(to, byte, size_bytes);
}

void *__wrap_memcpy(void *to, const void *from, size_t size_bytes)
{
    steps += size_bytes / sizeof(uint64_t);
    return __real_memcpy(to, from, size_bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t size_bytes)
{
    steps += size_bytes / sizeof(uint64_t);
    return __real_memmove(to, from, size_bytes);
}

static double time_now(void)
{
    return (double)steps * 1e-6;
}
#else
static const char unit[] = "ms of CPU time";

static double time_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
#endif

/* ---- PTX ---- */

struct text {
    char *at;
    size_t length, size;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    if (text->size - text->length < 4096) {
        text->size = 2 * text->size + 65536;
        text->at = realloc(text->at, text->size);
        if (!text->at)
            abort();
    }
    va_start(arguments, format);
    text->length += (size_t)vsnprintf(text->at + text->length, 4096, format, arguments);
    va_end(arguments);
}

/* A kernel whose %rd1 is an address in global memory and whose %r1 is read from there. */
static void begin_kernel(struct text *text)
{
    add(text, ".visible .entry k(.param .u64 p)\n{\n.reg .u64 %%rd<8>;\n.reg .u32 %%r<8>;\n.reg .pred %%p<8>;\n"
              "ld.param.u64 %%rd1, [p];\nld.global.u32 %%r1, [%%rd1];\nmov.u32 %%r2, %%tid.x;\n");
}

static void end_kernel(struct text *text)
{
    add(text, "st.global.u32 [%%rd1], %%r1;\nret;\n}\n");
}

static void write_barriers(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "bar.sync 0;\n");
    end_kernel(text);
}

static void write_shuffles(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "shfl.sync.bfly.b32 %%r1, %%r1, %u, 31, -1;\n", 1 + i % 31);
    end_kernel(text);
}

/* The values are read behind the last join, so all of them live through all that follow them. */
static void write_branches(struct text *text, unsigned n)
{
    begin_kernel(text);
    add(text, ".reg .u32 %%v<%u>;\n", n);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "setp.gt.u32 %%p1, %%r1, %u;\n@%%p1 bra ELSE%u;\nadd.u32 %%v%u, %%r1, %u;\nbra JOIN%u;\nELSE%u:\nmul.lo.u32 %%v%u, %%r1, "
            "%u;\nJOIN%u:\n",
            i, i, i, i + 1, i, i, i, i + 3, i);
    for (unsigned i = 0; i < n; i++)
        add(text, "xor.b32 %%r1, %%r1, %%v%u;\n", i);
    end_kernel(text);
}

static void write_sums(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "add.s32 %%r1, %%r1, %%r%u;\n", 1 + i % 2);
    end_kernel(text);
}

static void write_increments(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "add.s32 %%r1, %%r1, %u;\n", i + 1);
    end_kernel(text);
}

static void write_mixture(struct text *text, unsigned n)
{
    static const char *const lines[] = {"add.u32 %r1, %r1, %r2;\n", "xor.b32 %r2, %r2, %r1;\n", "mad.lo.u32 %r1, %r1, %r2, 7;\n",
                                        "shl.b32 %r3, %r1, 3;\n", "sub.u32 %r2, %r3, %r2;\n"};

    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "%s", lines[i % (sizeof lines / sizeof *lines)]);
    end_kernel(text);
}

static void write_labels(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "setp.gt.u32 %%p1, %%r1, %u;\n@%%p1 bra L%u;\nadd.u32 %%r1, %%r1, %u;\nL%u:\n", i, i, i + 3, i);
    end_kernel(text);
}

static void write_live_registers(struct text *text, unsigned n)
{
    begin_kernel(text);
    add(text, ".reg .u32 %%v<%u>;\n", n);
    for (unsigned i = 0; i < n; i++)
        add(text, "ld.global.u32 %%v%u, [%%rd1+%u];\n", i, 4 * i);
    add(text, "LOOP:\n");
    for (unsigned i = 0; i < n; i++)
        add(text, "add.u32 %%v%u, %%v%u, %%v%u;\n", i, i, (i + 1) % n);
    add(text, "sub.u32 %%r1, %%r1, 1;\nsetp.ne.u32 %%p1, %%r1, 0;\n@%%p1 bra LOOP;\n");
    for (unsigned i = 0; i < n; i++)
        add(text, "st.global.u32 [%%rd1+%u], %%v%u;\n", 4 * i, i);
    end_kernel(text);
}

/* Of which one is compiled. */
static void write_kernels(struct text *text, unsigned n)
{
    begin_kernel(text);
    end_kernel(text);
    for (unsigned i = 1; i < n; i++)
        add(text,
            ".visible .entry k%u(.param .u64 p)\n{\n.reg .u64 %%rd<2>;\nld.param.u64 %%rd1, [p];\nst.global.u32 [%%rd1], %u;\nret;\n}\n", i,
            i);
}

static void write_calls(struct text *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        add(text, ".func (.param .b32 out) f%u(.param .b32 in)\n{\n.reg .u32 %%r<4>;\nld.param.u32 %%r1, [in];\n", i);
        if (i)
            add(text, "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %%r1;\ncall.uni (b), f%u, (a);\nld.param.b32 %%r1, [b];\n}\n",
                i - 1);
        add(text, "add.u32 %%r1, %%r1, %u;\nst.param.b32 [out], %%r1;\nret;\n}\n", i);
    }
    begin_kernel(text);
    add(text, "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %%r1;\ncall.uni (b), f%u, (a);\nld.param.b32 %%r1, [b];\n}\n", n - 1);
    end_kernel(text);
}

/* Each function calls the one below it twice. */
static void write_doubling_calls(struct text *text, unsigned n)
{
    static const char call[] =
        "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %%r%u;\ncall.uni (b), f%u, (a);\nld.param.b32 %%r%u, [b];\n}\n";

    for (unsigned i = 0; i < n; i++) {
        add(text, ".func (.param .b32 out) f%u(.param .b32 in)\n{\n.reg .u32 %%r<4>;\nld.param.u32 %%r1, [in];\nmov.u32 %%r2, %u;\n", i, i);
        for (unsigned k = 0; k < 20; k++)
            add(text, "mad.lo.u32 %%r2, %%r2, %%r1, %u;\n", i + k);
        if (i) {
            add(text, call, 1u, i - 1, 1u);
            add(text, call, 2u, i - 1, 2u);
        }
        add(text, "add.u32 %%r1, %%r1, %%r2;\nst.param.b32 [out], %%r1;\nret;\n}\n");
    }
    begin_kernel(text);
    add(text, call, 1u, n - 1, 1u);
    end_kernel(text);
}

static void begin_loop(struct text *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add(text, i ? ", T%u" : "TARGETS: .branchtargets T%u", i);
    add(text, ";\nLOOP:\nld.volatile.global.u32 %%r3, [%%rd1+4];\nsetp.eq.u32 %%p1, %%r3, 0;\n@%%p1 bra DONE;\nbrx.idx %%r3, TARGETS;\n");
}

/* An interpreter's loop. */
static void write_targets(struct text *text, unsigned n)
{
    begin_kernel(text);
    begin_loop(text, n);
    for (unsigned i = 0; i < n; i++)
        add(text, "T%u:\nadd.u32 %%r1, %%r1, %u;\nbra LOOP;\n", i, 2 * i + 1);
    add(text, "DONE:\n");
    end_kernel(text);
}

/* Each target writes a register of its own, all of which live around the loop. */
static void write_states(struct text *text, unsigned n)
{
    begin_kernel(text);
    add(text, ".reg .u32 %%v<%u>;\n", n);
    for (unsigned i = 0; i < n; i++)
        add(text, "mov.u32 %%v%u, %u;\n", i, i);
    begin_loop(text, n);
    for (unsigned i = 0; i < n; i++)
        add(text, "T%u:\nadd.u32 %%v%u, %%v%u, %u;\nbra LOOP;\n", i, i, i, 2 * i + 1);
    add(text, "DONE:\n");
    for (unsigned i = 0; i < n; i++)
        add(text, "xor.b32 %%r1, %%r1, %%v%u;\n", i);
    end_kernel(text);
}

static void write_fused(struct text *text, unsigned n, const char *type)
{
    begin_kernel(text);
    add(text, ".reg .%s %%f<4>;\nld.global.%s %%f1, [%%rd1+8];\nld.global.%s %%f2, [%%rd1+16];\n", type, type, type);
    for (unsigned i = 0; i < n; i++)
        add(text, "fma.rn.%s %%f1, %%f1, %%f2, %%f1;\n", type);
    add(text, "st.global.%s [%%rd1], %%f1;\n", type);
    end_kernel(text);
}

static void write_fused32(struct text *text, unsigned n)
{
    write_fused(text, n, "f32");
}

static void write_fused64(struct text *text, unsigned n)
{
    write_fused(text, n, "f64");
}

/* Shuffles that only some threads reach, all of them under the mask of all lanes. */
static void write_conditional_shuffles(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "setp.eq.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\nshfl.sync.down.b32 %%r1, %%r1, 1, 31, -1;\nL%u:\nadd.u32 %%r1, %%r1, %%r2;\n", i,
            i, i);
    end_kernel(text);
}

/* The lanes meet between the shuffles, so no two shuffles can be paired, and the kernel can be predicated. */
static void write_separated_shuffles(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "setp.eq.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\nshfl.sync.down.b32 %%r1, %%r1, 1, 31, -1;\nL%u:\nbar.warp.sync -1;\n"
            "add.u32 %%r1, %%r1, %%r2;\n",
            i, i, i);
    end_kernel(text);
}

/* As compilers write it: a register for each value. */
static void write_named_shuffles(struct text *text, unsigned n)
{
    begin_kernel(text);
    add(text, ".reg .u32 %%v<%u>, %%w<%u>;\n.reg .pred %%q<%u>;\nmov.u32 %%v0, %%r1;\n", n + 1, n, n);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "mov.u32 %%v%u, %%v%u;\nsetp.eq.u32 %%q%u, %%r2, %u;\n@%%q%u bra L%u;\nshfl.sync.down.b32 %%w%u, %%v%u, 1, 31, -1;\n"
            "add.u32 %%v%u, %%v%u, %%w%u;\nL%u:\n",
            i + 1, i, i, i, i, i, i, i, i + 1, i, i, i);
    add(text, "mov.u32 %%r1, %%v%u;\n", n);
    end_kernel(text);
}

/* Under the mask of the lanes that are there. */
static void write_active_shuffles(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "setp.eq.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\nactivemask.b32 %%r3;\nshfl.sync.down.b32 %%r1, %%r1, 1, 31, %%r3;\nL%u:\n"
            "add.u32 %%r1, %%r1, %%r2;\n",
            i, i, i);
    end_kernel(text);
}

static void write_polls(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text,
            "setp.ne.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\nst.volatile.global.u32 [%%rd1+%u], 5;\nL%u:\n"
            "ld.volatile.global.u32 %%r3, [%%rd1+%u];\nsetp.eq.u32 %%p1, %%r3, 0;\n@%%p1 bra L%u;\nadd.u32 %%r1, %%r1, %%r3;\n",
            i, i, 4 * i, i, 4 * i, i);
    end_kernel(text);
}

/* Barriers of a part of the block. */
static void write_counted_barriers(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "bar.sync %u, 64;\nadd.u32 %%r1, %%r1, %%r2;\n", i % 16);
    end_kernel(text);
}

static void write_exits(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "mad.lo.u32 %%r1, %%r1, 3, %%r2;\nsetp.eq.u32 %%p1, %%r2, %u;\n@%%p1 bra OUT;\n", i);
    add(text, "OUT:\n");
    end_kernel(text);
}

static void write_working_exits(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "mad.lo.u32 %%r1, %%r1, 3, %%r2;\nsetp.ne.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\nadd.u32 %%r1, %%r1, 7;\nbra OUT;\nL%u:\n",
            i, i, i);
    add(text, "OUT:\n");
    end_kernel(text);
}

static void write_returns(struct text *text, unsigned n)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "mad.lo.u32 %%r1, %%r1, 3, %%r2;\nsetp.eq.u32 %%p1, %%r2, %u;\n@%%p1 ret;\n", i);
    end_kernel(text);
}

/* Exits to labels of their own in reverse order, so that each one is within all earlier ones. */
static void write_nested(struct text *text, unsigned n, const char *innermost)
{
    begin_kernel(text);
    for (unsigned i = 0; i < n; i++)
        add(text, "mad.lo.u32 %%r1, %%r1, 3, %%r2;\nsetp.eq.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\n", i, i);
    add(text, "%s", innermost);
    for (unsigned i = n; i-- > 0;)
        add(text, "L%u:\nadd.u32 %%r1, %%r1, %u;\n", i, i);
    end_kernel(text);
}

static void write_nested_exits(struct text *text, unsigned n)
{
    write_nested(text, n, "");
}

/* A barrier that only some threads reach. */
static void write_nested_barrier(struct text *text, unsigned n)
{
    write_nested(text, n, "bar.sync 0;\n");
}

enum form { COLLECTIVE, PREDICATED, RESUMED, NATIVE };

static const struct shape {
    const char *name;
    void (*write)(struct text *text, unsigned n);
    unsigned n;
    enum form form;
    unsigned piece_bytes; /* the most memory that each piece may take; 0: not limited */
} shapes[] = {
    {"bar.sync in a row", write_barriers, 4000, COLLECTIVE, 0},
    {"shuffles in a row", write_shuffles, 2000, COLLECTIVE, 0},
    {"shuffles in a row, native", write_shuffles, 4000, NATIVE, 0},
    {"if/else whose values stay live", write_branches, 2000, COLLECTIVE, 0},
    {"dependent adds", write_sums, 16000, COLLECTIVE, 0},
    {"dependent adds of constants", write_increments, 16000, COLLECTIVE, 0},
    {"mixed instructions", write_mixture, 25000, COLLECTIVE, 0},
    {"labels", write_labels, 12500, COLLECTIVE, 0},
    {"registers that live through a loop", write_live_registers, 5000, COLLECTIVE, 0},
    {"kernels in a module", write_kernels, 2500, COLLECTIVE, 0},
    {"call chain", write_calls, 4000, COLLECTIVE, 0},
    {"calls that double", write_doubling_calls, 300, COLLECTIVE, 0},
    {"brx.idx in a loop", write_targets, 4000, COLLECTIVE, 0},
    {"brx.idx, a register each", write_states, 4000, COLLECTIVE, 0},
    {"fma.rn.f32", write_fused32, 4000, COLLECTIVE, 11 * 1024}, /* the common form of ptx2spv/exact/guard_rounding.c: 10 KiB */
    /* The limit is a tenth of the memory that an operation took when its sequence was repeated in the kernel. */
    {"fma.rn.f64", write_fused64, 4000, COLLECTIVE, 105 * 1024 / 10},
    {"conditional shuffles", write_conditional_shuffles, 1000, COLLECTIVE, 0},
    {"conditional shuffles, predicated", write_separated_shuffles, 1000, PREDICATED, 0},
    {"conditional shuffles, resumed", write_conditional_shuffles, 1000, RESUMED, 0},
    {"conditional shuffles, native", write_conditional_shuffles, 2000, NATIVE, 0},
    {"the same, a register each", write_named_shuffles, 1000, RESUMED, 0},
    {"activemask and shuffles", write_active_shuffles, 500, COLLECTIVE, 0},
    {"activemask, predicated", write_active_shuffles, 500, PREDICATED, 0},
    {"activemask, resumed", write_active_shuffles, 500, RESUMED, 0},
    {"activemask, native", write_active_shuffles, 1000, NATIVE, 0},
    {"polling loops", write_polls, 1000, COLLECTIVE, 0},
    {"polling loops, native", write_polls, 2000, NATIVE, 0},
    {"counted barriers, resumed", write_counted_barriers, 1000, RESUMED, 0},
    {"counted barriers, native", write_counted_barriers, 1000, NATIVE, 0},
    {"early exits", write_exits, 2000, COLLECTIVE, 0},
    {"early exits with work", write_working_exits, 2000, COLLECTIVE, 0},
    {"early returns", write_returns, 2000, COLLECTIVE, 0},
    {"exits to nested labels", write_nested_exits, 2000, COLLECTIVE, 0},
    {"the same around a barrier", write_nested_barrier, 2000, COLLECTIVE, 0},
};

/* ---- measurement ---- */

static struct ptx2spv_target target_of(enum form form)
{
    static const enum ptx2spv_sync_form sync_forms[] = {
        [PREDICATED] = PTX2SPV_SYNC_PREDICATED, [RESUMED] = PTX2SPV_SYNC_RESUMED, [NATIVE] = PTX2SPV_SYNC_CHEAPEST};

    return (struct ptx2spv_target){
        .dialect = PTX2SPV_VULKAN,
        .warp_form = form == NATIVE ? PTX2SPV_WARP_NATIVE : PTX2SPV_WARP_COLLECTIVE,
        .sync_form = sync_forms[form],
        .subgroup_size = form == NATIVE ? 32 : 8,
        .push_constant_bytes = 256,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .float64 = 1,
        .float16 = 1,
        .int64 = 1,
        .int16 = 1,
        .int8 = 1,
        .storage8 = 1,
        .storage16 = 1,
        .atomic_int64_global = 1,
        .memory_model_device_scope = 1,
        .keeps_subnormals32 = 1,
        .inlines = 1,
    };
}

static void print_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    (void)user;
    fprintf(stderr, "line %u: %s\n", diagnostic->line, diagnostic->text);
}

struct figures {
    double time; /* see `unit` */
    size_t bytes;
};

static bool compile(const struct shape *shape, const struct text *text)
{
    const struct ptx2spv_options options = {.on_diagnostic = print_diagnostic};
    const struct ptx2spv_target target = target_of(shape->form);
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel = {0};
    enum ptx2spv_status status = ptx2spv_module_create(text->at, text->length, &options, &module);

    if (status == PTX2SPV_OK)
        status = ptx2spv_kernel_compile(module, 0, &target, &options, &kernel);
    if (status != PTX2SPV_OK)
        fprintf(stderr, "%s: %s\n", shape->name, ptx2spv_status_string(status));
    ptx2spv_kernel_finish(&kernel);
    ptx2spv_module_destroy(module);
    return status == PTX2SPV_OK;
}

/* The least time of all runs counts. */
static bool measure(const struct shape *shape, unsigned n, struct figures *out)
{
    struct text text = {0};
    bool good = true;

    add(&text, ".version 7.8\n.target sm_80\n.address_size 64\n");
    shape->write(&text, n);
    for (unsigned i = 0; i < REPEATS && good; i++) {
        const size_t before_bytes = heap.most_bytes = heap.now_bytes;
        const double start = time_now();
        double time;

        good = compile(shape, &text);
        time = time_now() - start;
        out->time = out->time > 0 && out->time < time ? out->time : time;
        out->bytes = heap.most_bytes - before_bytes;
    }
    free(text.at);
    return good;
}

static double exponent(double small, double large)
{
    return log(large / small) / log(1 << (SIZES - 1));
}

/* False if the shape cannot be compiled, or if an exponent is too large. */
static bool measure_shape(const struct shape *shape, unsigned n)
{
    struct figures figures[SIZES] = {0};
    double time, memory, piece_bytes;

    for (int i = 0; i < SIZES; i++)
        if (!measure(shape, n << i, &figures[i]))
            return false;
    time = exponent(figures[0].time, figures[SIZES - 1].time);
    memory = exponent((double)figures[0].bytes, (double)figures[SIZES - 1].bytes);
    piece_bytes = ((double)figures[SIZES - 1].bytes - (double)figures[0].bytes) / (double)((n << (SIZES - 1)) - n);
    printf("%-32s %6u", shape->name, n);
    for (int i = 0; i < SIZES; i++)
        printf(" %9.1f", figures[i].time);
    for (int i = 0; i < SIZES; i++)
        printf(" %8.1f", (double)figures[i].bytes / (1 << 20));
    printf(" %6.2f %6.2f %8.2f\n", time, memory, piece_bytes / 1024);
    fflush(stdout);
#ifdef COUNT_STEPS
    return time <= EXPONENT_MAX && memory <= EXPONENT_MAX && (!shape->piece_bytes || piece_bytes <= shape->piece_bytes);
#else
    return true;
#endif
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    bool good = true, found = false;

    printf("%-32s %6s %29s %26s %13s %8s\n", "", "", unit, "MiB", "exponents", "KiB");
    printf("%-32s %6s %9s %9s %9s %8s %8s %8s %6s %6s %8s\n", "shape", "n", "n", "2n", "4n", "n", "2n", "4n", "time", "memory", "a piece");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (name && strcmp(name, shapes[i].name) != 0)
            continue;
        found = true;
        good &= measure_shape(&shapes[i], n ? n : shapes[i].n / DIVISOR);
    }
    return !found || !good;
}
