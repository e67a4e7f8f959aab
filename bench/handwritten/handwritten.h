/* SPDX-License-Identifier: Apache-2.0 */
/* What a graphics API offers to the comparison: kernels that a person wrote for it, on buffers of floats. Whatever fails ends the program. */
#ifndef CUTTLE_BENCH_HANDWRITTEN_H
#define CUTTLE_BENCH_HANDWRITTEN_H

#include <stddef.h>
#include <stdint.h>

#define HAND_BUFFERS 3

/* A kernel takes its buffers, the size of the problem, and a float. */
struct hand_launch {
    const char *kernel;
    unsigned buffers[HAND_BUFFERS], n_buffers;
    uint32_t groups[2], local[2];
    struct {
        uint32_t n;
        float x;
    } scalars;
};

struct hand_api {
    const char *name;
    void (*open)(void);
    unsigned (*buffer)(const void *data, size_t size_bytes); /* data NULL: zeros */
    void (*prepare)(const struct hand_launch *launch);       /* the kernel that `run` launches from now on */
    void (*run)(void);                                       /* launches it and waits */
    void (*read)(unsigned buffer, void *data, size_t size_bytes);
    void (*close)(void);
};

extern const struct hand_api hand_vulkan, hand_opencl;

_Noreturn void hand_die(const char *what, int code);

#endif
