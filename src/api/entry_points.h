/* SPDX-License-Identifier: Apache-2.0 */
/* The API as a table: prototypes of every symbol, generated from entry_points.def, and the properties of each.
 *
 * To implement a function, define in src/api
 *   - for an ENTRY or ENTRY_PTSZ row: the function under its symbol, e.g. cuLaunchKernel. Its per-thread variant is generated: it replaces
 *     stream 0 by CU_STREAM_PER_THREAD and calls your function (per_thread_variants.c);
 *   - for an ENTRY_PTDS row: ct_<symbol> with the stream as an additional argument, e.g. ct_cuMemcpyHtoD_v2(dst, src, size, stream), where
 *     stream is CU_STREAM_LEGACY or CU_STREAM_PER_THREAD. Both symbols are generated and call it.
 * Your definition replaces a weak stub (stubs.c) when the library is linked; there is no list of implemented functions to maintain. */
#ifndef CT_API_ENTRY_POINTS_H
#define CT_API_ENTRY_POINTS_H

/* Here a name is the symbol itself, so that all versions of a function can be declared side by side. */
#ifndef __CUDA_API_VERSION_INTERNAL
#ifdef CUDA_VERSION
#error "include entry_points.h before cuda.h, or define __CUDA_API_VERSION_INTERNAL for the whole file"
#endif
#define __CUDA_API_VERSION_INTERNAL
#endif
#include "cuda.h"
#include "cudaProfiler.h"

#include <stdbool.h>

/* Types of the EGL and VDPAU interfaces, as far as their layout matters to callers. */
typedef struct CUeglStreamConnection_st *CUeglStreamConnection;
typedef struct CUeglFrame_st {
    void *planes[3];
    unsigned int numbers[9];
} CUeglFrame;
typedef int VdpGetProcAddress(uint32_t device, uint32_t function_id, void **function);

#define CT_UNPAREN(...) __VA_ARGS__

/* In src/api the name of a symbol is the function that implements it; the linker knows it by a private name. exports.c defines the
 * symbol itself, which applications call: it first checks whether the caller is permitted to call the function. */
#ifdef CT_API_IMPLEMENTATION
#define CT_LINKER_NAME(symbol) __asm__("ct_do_" #symbol)
#pragma GCC visibility push(hidden)
#else
#define CT_LINKER_NAME(symbol)
#pragma GCC visibility push(default)
#endif
#define SYMBOL(symbol, name, version, flavour, params, args) CUresult CUDAAPI symbol params CT_LINKER_NAME(symbol);
#include "entry_points.def"
#pragma GCC visibility pop
#ifdef CT_API_IMPLEMENTATION
#pragma GCC visibility push(default)
#define SYMBOL(symbol, name, version, flavour, params, args) CUresult CUDAAPI ct_exported_##symbol params __asm__(#symbol);
#include "entry_points.def"
#pragma GCC visibility pop
#endif

/* The implementation of both symbols of an ENTRY_PTDS row. */
#define ENTRY(symbol, name, version, params, args)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args) CUresult ct_##symbol(CT_UNPAREN params, CUstream stream);
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams)
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)
#include "entry_points.def"

/* Rows: a symbol and its per-thread variant share one. */
enum ct_entry_row {
#define ENTRY(symbol, name, version, params, args) CT_ROW_##symbol,
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args) CT_ROW_##symbol,
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams) CT_ROW_##symbol,
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args) CT_ROW_##symbol,
#include "entry_points.def"
    CT_ROW_COUNT
};

/* The meaning of stream 0 for a symbol. */
enum ct_stream_flavour {
    CT_FLAVOUR_ANY,        /* there is only one symbol */
    CT_FLAVOUR_LEGACY,     /* the stream that synchronizes with all others */
    CT_FLAVOUR_PER_THREAD, /* the default stream of the calling thread */
};

typedef void (*ct_function)(void);

/* A symbol that the library exports. */
struct ct_entry_point {
    const char *symbol;
    const char *name;           /* the name that cuGetProcAddress looks up */
    unsigned char name_length;  /* bytes, without the final 0 */
    unsigned char flavour;      /* enum ct_stream_flavour */
    unsigned short version;     /* the first CUDA version in which the name refers to this symbol */
    ct_function address;        /* of the symbol */
    ct_function implementation; /* the function that does the work: the symbol, or the function that its variants call */
    ct_function stub;           /* the value of implementation if the symbol is not implemented */
};

enum {
    CT_ENTRY_POINT_COUNT = 0
#define SYMBOL(symbol, name, version, flavour, params, args) +1
#include "entry_points.def"
};

/* Index from 0 to CT_ENTRY_POINT_COUNT - 1, in the order of the manual. */
const struct ct_entry_point *ct_entry_point(unsigned index);
/* True unless the symbol is a stub that only returns CUDA_ERROR_NOT_SUPPORTED. */
bool ct_entry_point_is_implemented(const struct ct_entry_point *entry);

#endif
