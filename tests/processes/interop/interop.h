/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the cases of the interop test: the CUDA half, checks, and the cases themselves.
 * The program links only libcuda.so.1, so that it also runs on NVIDIA's own driver. */
#ifndef CUTTLE_TESTS_INTEROP_H
#define CUTTLE_TESTS_INTEROP_H

#include "app.h"

#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless `call` returns `code`. */
#define gives(code, call) expect_code((code), (call), #call, __FILE__, __LINE__)
#define ok(call) gives(CUDA_SUCCESS, call)
#define expect(condition) expect_true((condition), #condition, __FILE__, __LINE__)
void expect_code(CUresult expected, CUresult got, const char *call, const char *file, int line);
void expect_true(bool condition, const char *text, const char *file, int line);

unsigned count_descriptors(void);        /* open ones of the process */
unsigned count_descriptors_like(int fd); /* of the same file or device node as this one */

struct cuda {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction map; /* (CUdeviceptr data, unsigned count, multiplier, addend, step): as map.spvasm, in place */
    CUfunction
        count_wrong; /* (CUdeviceptr data, unsigned count, multiplier, addend, CUdeviceptr wrong): data[i] != i * multiplier + addend */
};
void cuda_open(struct cuda *cuda);
void cuda_close(struct cuda *cuda);
void cuda_map(struct cuda *cuda, CUstream stream, CUdeviceptr data, struct app_map map);
/* Counts with a kernel how many of `count` words are not i * multiplier + addend. */
unsigned cuda_count_wrong(struct cuda *cuda, CUdeviceptr data, unsigned count, unsigned multiplier, unsigned addend);
void cuda_count_wrong_async(struct cuda *cuda, CUstream stream, CUdeviceptr data, unsigned count, unsigned multiplier, unsigned addend,
                            CUdeviceptr wrong);

/* Returns the descriptor for cuImportExternalMemory, without flags. */
CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory_handle(unsigned type, int fd, unsigned long long bytes);
/* Imports the whole memory that the application exports; the driver then owns the descriptor. */
CUexternalMemory import_memory(struct app *app, const struct app_buffer *buffer);
CUdeviceptr map_buffer(CUexternalMemory memory, unsigned long long offset, unsigned long long bytes);

/* 77: skipped, as ctest interprets it. */
enum { PASSED = 0, LEFT_OUT = 77 };
typedef int interop_case(struct app *app, struct cuda *cuda);
interop_case ping_pong_host, ping_pong_timeline, ping_pong_binary, semaphore_arrays, semaphore_errors, semaphore_ownership;
interop_case odd_offsets, combined_range, freed_once, errors_of_launches;
void not_initialized(void);
void semaphore_facts(void);
interop_case images, image_order, image_errors, image_kernels;
interop_case exported_memory, exported_memory_stays, exported_and_imported;
interop_case dma_buf_of_pages, dma_buf_exported, dma_buf_stays, dma_buf_errors;
int two_processes(struct cuda *cuda, const char *self);
int child_process(int socket, struct cuda *cuda);

#endif
