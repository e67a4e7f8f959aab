/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that all examples share: options, a context, the module, memory, timing, the result line.
 * An example runs with any libcuda.so.1: Cuttle's, or NVIDIA's own. */
#ifndef CUTTLE_EXAMPLE_H
#define CUTTLE_EXAMPLE_H

#include <cuda.h>

#include <stdbool.h>
#include <stddef.h>

/* Ends the program with a message if a CUDA call fails. */
#define CHECK(call) example_check((call), #call, __FILE__, __LINE__)
void example_check(CUresult result, const char *call, const char *file, int line);

/* Returns the first device, whose primary context is current afterwards and is stored in *context. */
CUdevice example_open(CUcontext *context);

struct example {
    const char *name;
    const char *ptx;    /* the loaded file */
    size_t size;        /* --size, or the default that was passed to example_begin */
    unsigned repeat;    /* --repeat: number of timed launches */
    const char *output; /* --output, or NULL */
    CUdevice device;
    CUcontext context;
    CUmodule module;
    bool failed;
};

/* Options: --ptx FILE (default: ptx/NAME.ptx in the program's folder), --size N, --repeat N, --output FILE. */
void example_begin(struct example *example, int argc, char **argv, const char *name, size_t default_size);
CUfunction example_function(struct example *example, const char *name);
CUdeviceptr example_upload(const void *data, size_t size_bytes); /* data NULL: filled with zeros */
void example_download(void *data, CUdeviceptr source, size_t size_bytes);

struct example_grid {
    unsigned grid_x, grid_y, block_x, block_y;
};
/* Launches once to warm up, then `repeat` times; returns the mean time of a launch, in milliseconds, measured by CUDA events. */
double example_launch(struct example *example, CUfunction function, struct example_grid grid, void **params);

/* Prints one line: name, work, time, rate in units per second, and whether the results are right (`errors` is the number of wrong ones). */
void example_report(struct example *example, const char *work, double ms, double units, const char *unit, size_t errors);
/* Frees everything; returns the program's exit status. */
int example_end(struct example *example);

/* Returns the path of a file in the program's folder, in static memory that the next call overwrites. */
const char *example_beside(const char *name);
/* Returns the bytes of a file, terminated by a zero; the caller frees them. Ends the program with a message if it cannot be read. */
char *example_read_file(const char *path, size_t *size_bytes);

/* The same pseudo-random numbers on all machines. */
unsigned example_random(unsigned *state);
float example_random_float(unsigned *state); /* [-1, 1) */

#endif
