/* SPDX-License-Identifier: Apache-2.0 */
/* What every example does around its kernel: options, a context, the module, memory, timing, the verdict.
 * An example runs on any libcuda.so.1: on Cuttle, or on NVIDIA's own. */
#ifndef CUTTLE_EXAMPLE_H
#define CUTTLE_EXAMPLE_H

#include <cuda.h>

#include <stdbool.h>
#include <stddef.h>

/* Ends the program with a message if a CUDA call fails. */
#define CHECK(call) example_check((call), #call, __FILE__, __LINE__)
void example_check(CUresult result, const char *call, const char *file, int line);

/* The first device, whose primary context is current from then on; *context is that. */
CUdevice example_open(CUcontext *context);

struct example {
    const char *name;
    const char *ptx;    /* the file that was loaded */
    size_t size;        /* --size, or the default given to example_begin */
    unsigned repeat;    /* --repeat: timed launches */
    const char *output; /* --output, or NULL */
    CUdevice device;
    CUcontext context;
    CUmodule module;
    bool failed;
};

/* Options: --ptx FILE (default: ptx/NAME.ptx beside the program), --size N, --repeat N, --output FILE. */
void example_begin(struct example *example, int argc, char **argv, const char *name, size_t default_size);
CUfunction example_function(struct example *example, const char *name);
CUdeviceptr example_upload(const void *data, size_t size_bytes); /* data NULL: zeros */
void example_download(void *data, CUdeviceptr source, size_t size_bytes);

struct example_grid {
    unsigned grid_x, grid_y, block_x, block_y;
};
/* Launches once to warm up, then `repeat` times; the mean time of one, in milliseconds, from CUDA events. */
double example_launch(struct example *example, CUfunction function, struct example_grid grid, void **params);

/* One line: name, work, time, rate in units per second, whether the results are right (`errors` wrong ones). */
void example_report(struct example *example, const char *work, double ms, double units, const char *unit, size_t errors);
/* Frees everything; the program's exit status. */
int example_end(struct example *example);

/* The path of what lies beside this program, in memory of the function's own: until it is called again. */
const char *example_beside(const char *name);
/* The bytes of a file, with a zero behind them; to be freed. Ends the program with a message if it cannot be read. */
char *example_read_file(const char *path, size_t *size_bytes);

/* The same pseudo-random numbers everywhere. */
unsigned example_random(unsigned *state);
float example_random_float(unsigned *state); /* [-1, 1) */

#endif
