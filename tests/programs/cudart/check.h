/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that check themselves: they print the error and exit with 1. */
#ifndef CUTTLE_TESTS_CUDART_CHECK_H
#define CUTTLE_TESTS_CUDART_CHECK_H

#include <cstdio>
#include <cstdlib>

/* A call of the runtime that must succeed. */
#define ok(call) gives(cudaSuccess, call)
#define gives(code, call)                                                                                                                  \
    do {                                                                                                                                   \
        cudaError_t gives_got = (call);                                                                                                    \
        if (gives_got != (code)) {                                                                                                         \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(gives_got));                                      \
            std::exit(1);                                                                                                                  \
        }                                                                                                                                  \
    } while (0)
#define check(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                                            \
            std::exit(1);                                                                                                                  \
        }                                                                                                                                  \
    } while (0)

#endif
