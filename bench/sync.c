/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of synchronization points in divergent code on devices without native warp instructions: compares the forms of CUTTLE_SYNC, each in
 * a process of its own. Prints, for each kernel, the microseconds per launch in the form that the compiler chooses and in the resumed form, and
 * their ratio; minimum of several rounds. Then the cost per block of a shuffle, a barrier and an atomic, in the chosen form. On devices
 * with native warp instructions use CUTTLE_WARP=collective. */
#include "example.h"
#include "timing.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 9, BLOCKS = 64, THREADS = 256, TURNS = 32 };

#define TREE                                                                                                                               \
    "shfl.sync.bfly.b32 w,x,16,31,-1; add.u32 x,x,w; shfl.sync.bfly.b32 w,x,8,31,-1; add.u32 x,x,w; shfl.sync.bfly.b32 w,x,4,31,-1;"       \
    "add.u32 x,x,w; shfl.sync.bfly.b32 w,x,2,31,-1; add.u32 x,x,w; shfl.sync.bfly.b32 w,x,1,31,-1; add.u32 x,x,w;"
#define WIDE_STEP(lanes)                                                                                                                   \
    "mov.b64 {w,a},d; shfl.sync.bfly.b32 w,w," lanes ",31,-1; shfl.sync.bfly.b32 a,a," lanes ",31,-1; mov.b64 o,{w,a}; add.u64 d,d,o;"
#define KERNEL(body)                                                                                                                       \
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 turns)\n{\n"                            \
    ".reg .pred p, q; .reg .b32 t, x, w, i, n, s, a; .reg .b64 o, d; .shared .align 4 .b8 sums[256];\n"                                    \
    "ld.param.u64 o,[out]; ld.param.u32 n,[turns]; mov.u32 t,%tid.x; mov.u32 i,0; mov.u32 s,sums; mov.u32 x,t;\n" body                     \
    "\nmul.wide.u32 d,t,4; add.u64 o,o,d; st.global.u32 [o],x; ret;\n}\n"

static const struct {
    const char *name, *ptx;
} kernels[] = {
    {"a warp's sum in an if",
     KERNEL("and.b32 w,t,32; setp.ne.u32 p,w,0; @p bra OUT; LOOP:" TREE "add.u32 i,i,1; setp.lt.u32 q,i,n; @q bra LOOP; OUT:")},
    {"a block's sum in a loop",
     KERNEL("shr.u32 a,t,5; mad.lo.u32 a,a,4,s; LOOP:" TREE "st.shared.u32 [a],x; bar.sync 0; setp.ge.u32 p,t,32;"
            "@p bra REST; and.b32 w,t,7; mad.lo.u32 w,w,4,s; ld.shared.u32 x,[w];" TREE
            "REST: bar.sync 0; add.u32 i,i,1; setp.lt.u32 q,i,n; @q bra LOOP;")},
    {"a warp's sum of 64 bits", KERNEL("cvt.u64.u32 d,t; LOOP:" WIDE_STEP("16") WIDE_STEP("8") WIDE_STEP("4") WIDE_STEP("2") WIDE_STEP(
                                    "1") "add.u32 i,i,1; setp.lt.u32 q,i,n; @q bra LOOP; cvt.u32.u64 x,d; ld.param.u64 o,[out];")},
    {"barriers after early exits",
     KERNEL("setp.ge.u32 p,t,250; @p ret; mad.lo.u32 a,t,0,s; LOOP: st.volatile.shared.u32 [a],i; bar.sync 0;"
            "ld.shared.u32 w,[s]; add.u32 x,x,w; bar.sync 0; add.u32 i,i,1; setp.lt.u32 q,i,n; @q bra LOOP;")},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

/* Kernels with the same loop, and with one operation four more times in it. */
#define FOUR(op) op op op op
#define ROUNDS_OF(op)                                                                                                                      \
    KERNEL("and.b32 a,t,63; mad.lo.u32 a,a,4,s; mov.u32 w,t; LOOP:" FOUR(op "add.u32 x,x,w;") "add.u32 i,i,1;"                             \
                                                                                              "setp.lt.u32 q,i,n; @q bra LOOP;")
static const struct {
    const char *name, *ptx;
} operations[] = {
    {"nothing", ROUNDS_OF("")},
    {"a shuffle", ROUNDS_OF("shfl.sync.bfly.b32 w,x,16,31,-1;")},
    {"a barrier", ROUNDS_OF("bar.sync 0;")},
    {"an atomic in shared memory", ROUNDS_OF("atom.shared.add.u32 w,[a],x;")},
};
enum { N_OPERATIONS = sizeof operations / sizeof *operations, OPERATIONS_A_TURN = 4, ALL = N_KERNELS + N_OPERATIONS };

static double measure(const char *ptx, CUdeviceptr out)
{
    unsigned turns = TURNS;
    void *params[] = {&out, &turns};
    double best = 1e30;
    CUmodule module;
    CUfunction function;

    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "k"));
    for (int round = 0; round <= ROUNDS; round++) { /* the first launch compiles */
        const double start = now_us();

        CHECK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
        CHECK(cuCtxSynchronize());
        if (round && now_us() - start < best)
            best = now_us() - start;
    }
    CHECK(cuModuleUnload(module));
    return best;
}

static void measure_all(double us[ALL])
{
    CUcontext context;
    CUdevice device;
    CUdeviceptr out;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate(&context, NULL, 0, device));
    CHECK(cuMemAlloc(&out, THREADS * sizeof(uint32_t)));
    for (int i = 0; i < N_KERNELS; i++)
        us[i] = measure(kernels[i].ptx, out);
    for (int i = 0; i < N_OPERATIONS; i++)
        us[N_KERNELS + i] = measure(operations[i].ptx, out);
    CHECK(cuMemFree(out));
    CHECK(cuCtxDestroy(context));
}

/* A process of its own, since options are read when a process starts to use the driver. */
static bool measure_apart(const char *form, double us[ALL])
{
    int ends[2], status = 1;
    ssize_t got;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        return false;
    if (child == 0) {
        if (*form)
            setenv("CUTTLE_SYNC", form, 1);
        measure_all(us);
        _exit(write(ends[1], us, ALL * sizeof *us) != (ssize_t)(ALL * sizeof *us));
    }
    close(ends[1]);
    got = read(ends[0], us, ALL * sizeof *us);
    close(ends[0]);
    return waitpid(child, &status, 0) == child && status == 0 && got == (ssize_t)(ALL * sizeof *us);
}

int main(void)
{
    double chosen[ALL], resumed[ALL];

    if (!measure_apart("", chosen) || !measure_apart("resumed", resumed)) {
        fprintf(stderr, "bench_sync: a process failed\n");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < N_KERNELS; i++)
        printf("%-28s chosen %10.1f us, resumed %10.1f us, ratio %6.2f\n", kernels[i].name, chosen[i], resumed[i], resumed[i] / chosen[i]);
    for (int i = 1; i < N_OPERATIONS; i++)
        printf("%-28s %10.2f us for %d threads\n", operations[i].name,
               (chosen[N_KERNELS + i] - chosen[N_KERNELS]) / (TURNS * OPERATIONS_A_TURN * BLOCKS), THREADS);
    return EXIT_SUCCESS;
}
