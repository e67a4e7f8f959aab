/* SPDX-License-Identifier: Apache-2.0 */
/* Running a probe's kernel on a device. */
#ifndef CT_CORE_PROBE_JOB_H
#define CT_CORE_PROBE_JOB_H

#include "backend.h"

/* A kernel `probe` with one parameter, the address of memory that contains `input` before and `output` afterwards. %globaltimer is the
 * device's unconverted clock. */
struct ct_probe_job {
    const char *text; /* PTX */
    unsigned blocks, threads;
    const void *input;
    void *output;
    size_t size_bytes;
    unsigned rounds;                            /* 0 means 1; each round starts with the memory of the previous one */
    void (*before)(void *user, unsigned round); /* may be NULL */
    void (*after)(void *user, unsigned round, const void *output);
    void *user;
    bool probe_matrices; /* the kernel does what struct ptx2spv_matrix_probe says */
};
/* Compiles and runs the kernel, with device addresses used without conversion. NOT_READY: the kernel did not end within the time limit, and
 * its memory and queue are leaked. */
CUresult ct_probe_execute(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                          const struct ct_probe_job *job);

#endif
