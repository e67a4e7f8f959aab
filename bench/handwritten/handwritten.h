/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a GPU API in the comparison: kernels written by hand for it, on buffers of floats. Any failure ends the program. */
#ifndef CUTTLE_BENCH_HANDWRITTEN_H
#define CUTTLE_BENCH_HANDWRITTEN_H

#include <stddef.h>
#include <stdint.h>

#define HAND_BUFFERS 3

enum hand_texture { HAND_NO_TEXTURE, HAND_POINT, HAND_LINEAR };

/* The arguments of a kernel are its buffers, the size of the problem, and a float. */
struct hand_launch {
    const char *kernel;
    unsigned buffers[HAND_BUFFERS], n_buffers;
    uint32_t groups[2], local[2];
    unsigned times;            /* launches in a row, each behind the end of the one before */
    enum hand_texture texture; /* the first buffer is the contents of a texture of n x n texels */
    struct {
        uint32_t n;
        float x;
    } scalars;
};

struct hand_api {
    const char *name;
    void (*open)(void);
    unsigned (*buffer)(const void *data, size_t size_bytes); /* data NULL: zeros */
    void (*prepare)(const struct hand_launch *launch);       /* sets what `run` launches */
    void (*run)(void);                                       /* launches it and waits */
    void (*read)(unsigned buffer, void *data, size_t size_bytes);
    void (*close)(void);
};

extern const struct hand_api hand_vulkan, hand_opencl;

_Noreturn void hand_fail(const char *what, int code);

#endif
