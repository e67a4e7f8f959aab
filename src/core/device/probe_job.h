/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that a probe runs on a device. */
#ifndef CT_CORE_PROBE_JOB_H
#define CT_CORE_PROBE_JOB_H

#include "backend.h"

/* A kernel `probe` with one parameter, the address of memory that has `input` before and `output` afterwards. %globaltimer is the device's
 * clock as it is. */
struct ct_probe_job {
    const char *text; /* PTX */
    unsigned blocks, threads;
    const void *input;
    void *output;
    size_t size_bytes;
    unsigned rounds;                            /* 0 is 1; the memory is what the round before left */
    void (*before)(void *user, unsigned round); /* may be NULL */
    void (*after)(void *user, unsigned round, const void *output);
    void *user;
};
/* Compiles and runs it on a device that takes the addresses of its own memory as they are. NOT_READY: the device did not come back, and
 * keeps what it was given. */
CUresult ct_probe_execute(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                          const struct ct_probe_job *job);

#endif
