/* SPDX-License-Identifier: Apache-2.0 */
/* The heat equation on a square plate, whose rows are distributed among the ranks of MPI, each with a CUDA device. Each step a rank computes
 * its first and its last row, sends them to its neighbours, and computes the rows between meanwhile. Rank 0 then does the same alone and on
 * the CPU; all results are equal bit for bit.
 *
 *   mpirun -n 4 mpi_jacobi [--ptx FILE] [--size N] [--steps N] [--staged | --direct]
 *
 * Where MPI can read device memory the rows are sent from there, else (and with --staged) through page-locked host memory. --direct sends them
 * from there in any case, for an MPI that does not know of CUDA on top of a library that does, as Debian's Open MPI on UCX. */
#include "example.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

enum { BLOCK_X = 64, BLOCK_Y = 4 };

struct options {
    const char *ptx;
    unsigned size; /* rows and columns of the plate without its fixed border */
    unsigned steps;
    bool is_staged, is_direct;
};

struct device {
    CUfunction jacobi;
    CUstream edge_stream, inner_stream;
    CUevent edges_done, inner_done;
};

/* The rows of one rank. Row 0 and row n_rows + 1 are the neighbours', or the fixed border. */
struct part {
    MPI_Comm comm;
    int rank, n_ranks;
    unsigned first_row, n_rows, width;
    CUdeviceptr now, next;
    CUdeviceptr changes; /* one for each step, as bits */
    float *staging[4];   /* page-locked rows: sent up and down, received from above and below; NULL if MPI gets device pointers */
};

/* What all ranks together computed; valid in rank 0 of the communicator. */
struct solution {
    float *plate;   /* size rows of size elements */
    float *changes; /* of each step */
    double seconds;
};

static void fail(const char *what)
{
    fprintf(stderr, "mpi_jacobi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    exit(EXIT_FAILURE);
}

/* Zeros: n floats or ints. */
static void *allocate(size_t n)
{
    float *made = calloc(n, sizeof *made);

    if (!made)
        fail("out of memory");
    return made;
}

/* ---- the plate ---- */

/* The border is fixed: hot at the top, with a wave on the left. All else begins at 0. */
static float border(unsigned row, unsigned column)
{
    return row == 0 ? 1.0f : column == 0 ? (float)(row % 16) / 16.0f : 0.0f;
}

static size_t row_bytes(const struct part *part)
{
    return part->width * sizeof(float);
}

static CUdeviceptr row_of(const struct part *part, CUdeviceptr plate, unsigned row)
{
    return plate + row * row_bytes(part);
}

static void part_init(struct part *part, MPI_Comm comm, const struct options *options)
{
    float *rows;

    memset(part, 0, sizeof *part);
    part->comm = comm;
    MPI_Comm_rank(comm, &part->rank);
    MPI_Comm_size(comm, &part->n_ranks);
    const unsigned rank = (unsigned)part->rank, n_ranks = (unsigned)part->n_ranks, rest = options->size % n_ranks;

    if (options->size < n_ranks)
        fail("there are more ranks than rows");
    part->width = options->size + 2;
    part->n_rows = options->size / n_ranks + (rank < rest);
    part->first_row = options->size / n_ranks * rank + (rank < rest ? rank : rest);
    rows = allocate((size_t)(part->n_rows + 2) * part->width);
    for (unsigned row = 0; row < part->n_rows + 2; row++)
        for (unsigned column = 0; column < part->width; column++)
            if (part->first_row + row == 0 || part->first_row + row > options->size || column == 0 || column > options->size)
                rows[(size_t)row * part->width + column] = border(part->first_row + row, column);
    part->now = example_upload(rows, (part->n_rows + 2) * row_bytes(part));
    part->next = example_upload(rows, (part->n_rows + 2) * row_bytes(part));
    part->changes = example_upload(NULL, options->steps * sizeof(float));
    free(rows);
    for (int i = 0; i < 4 && options->is_staged; i++)
        CHECK(cuMemAllocHost((void **)&part->staging[i], row_bytes(part)));
}

static void part_finish(struct part *part)
{
    CHECK(cuMemFree(part->now));
    CHECK(cuMemFree(part->next));
    CHECK(cuMemFree(part->changes));
    for (int i = 0; i < 4 && part->staging[i]; i++)
        CHECK(cuMemFreeHost(part->staging[i]));
}

/* ---- steps ---- */

static void launch(const struct device *device, const struct part *part, unsigned step, unsigned first_row, unsigned n_rows,
                   CUstream stream)
{
    CUdeviceptr now = part->now, next = part->next, largest = part->changes + step * sizeof(float);
    unsigned width = part->width;
    void *params[] = {&now, &next, &width, &first_row, &n_rows, &largest};

    if (n_rows)
        CHECK(cuLaunchKernel(device->jacobi, (width - 2 + BLOCK_X - 1) / BLOCK_X, (n_rows + BLOCK_Y - 1) / BLOCK_Y, 1, BLOCK_X, BLOCK_Y, 1,
                             0, stream, params, NULL));
}

/* Exchanges the outer rows of `next`, whose computation was enqueued in the edge stream. Returns when the neighbours' rows are there, or are
 * being copied in the edge stream. */
static void exchange(const struct device *device, const struct part *part)
{
    const int above = part->rank ? part->rank - 1 : MPI_PROC_NULL, below = part->rank + 1 < part->n_ranks ? part->rank + 1 : MPI_PROC_NULL;
    const unsigned rows[4] = {1, part->n_rows, 0, part->n_rows + 1}; /* sent up and down, received from above and below */
    const int neighbours[4] = {above, below, above, below};
    MPI_Request requests[4];
    void *buffers[4];

    for (int i = 0; i < 4; i++)
        buffers[i] = part->staging[i] ? (void *)part->staging[i] : (void *)(uintptr_t)row_of(part, part->next, rows[i]);
    for (int i = 0; i < 2 && part->staging[i]; i++)
        CHECK(cuMemcpyDtoHAsync(part->staging[i], row_of(part, part->next, rows[i]), row_bytes(part), device->edge_stream));
    CHECK(cuEventRecord(device->edges_done, device->edge_stream));
    CHECK(cuEventSynchronize(device->edges_done));
    for (int i = 2; i < 4; i++)
        MPI_Irecv(buffers[i], (int)part->width, MPI_FLOAT, neighbours[i], 3 - i, part->comm, &requests[i]);
    for (int i = 0; i < 2; i++)
        MPI_Isend(buffers[i], (int)part->width, MPI_FLOAT, neighbours[i], i, part->comm, &requests[i]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 2; i < 4 && part->staging[i]; i++)
        if (neighbours[i] != MPI_PROC_NULL)
            CHECK(cuMemcpyHtoDAsync(row_of(part, part->next, rows[i]), part->staging[i], row_bytes(part), device->edge_stream));
}

static void step(const struct device *device, struct part *part, unsigned number)
{
    const CUdeviceptr now = part->now;

    /* The rows between, of the step before, are read here; and they were the last to read what is overwritten. */
    CHECK(cuStreamWaitEvent(device->edge_stream, device->inner_done, 0));
    launch(device, part, number, 1, 1, device->edge_stream);
    launch(device, part, number, part->n_rows, part->n_rows > 1, device->edge_stream);
    launch(device, part, number, 2, part->n_rows > 2 ? part->n_rows - 2 : 0, device->inner_stream);
    CHECK(cuEventRecord(device->inner_done, device->inner_stream));
    exchange(device, part); /* while the inner stream computes */
    part->now = part->next;
    part->next = now;
}

/* Collects the plate and the changes in rank 0. */
static void gather(const struct part *part, const struct options *options, struct solution *solution)
{
    const size_t size = options->size;
    float *mine = allocate((size_t)part->n_rows * size), *changes = allocate(options->steps);
    int *counts = allocate((size_t)part->n_ranks), *places = allocate((size_t)part->n_ranks), n_mine = (int)(part->n_rows * size);
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = row_of(part, part->now, 1) + sizeof(float),
        .srcPitch = row_bytes(part),
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = mine,
        .dstPitch = size * sizeof(float),
        .WidthInBytes = size * sizeof(float),
        .Height = part->n_rows,
    };

    CHECK(cuMemcpy2D(&copy));
    example_download(changes, part->changes, options->steps * sizeof(float));
    MPI_Gather(&n_mine, 1, MPI_INT, counts, 1, MPI_INT, 0, part->comm);
    for (int i = 1; i < part->n_ranks; i++)
        places[i] = places[i - 1] + counts[i - 1];
    MPI_Gatherv(mine, n_mine, MPI_FLOAT, solution->plate, counts, places, MPI_FLOAT, 0, part->comm);
    MPI_Reduce(changes, solution->changes, (int)options->steps, MPI_FLOAT, MPI_MAX, 0, part->comm);
    free(mine);
    free(changes);
    free(counts);
    free(places);
}

static struct solution solve(const struct device *device, MPI_Comm comm, const struct options *options)
{
    struct solution solution = {allocate((size_t)options->size * options->size), allocate(options->steps), 0};
    struct part part;

    part_init(&part, comm, options);
    MPI_Barrier(comm);
    const double begin = MPI_Wtime();
    for (unsigned i = 0; i < options->steps; i++)
        step(device, &part, i);
    CHECK(cuCtxSynchronize());
    MPI_Barrier(comm);
    solution.seconds = MPI_Wtime() - begin;
    gather(&part, options, &solution);
    part_finish(&part);
    return solution;
}

/* The same on the CPU, by the same operations in the same order. */
static struct solution solve_on_cpu(const struct options *options)
{
    const size_t size = options->size, width = size + 2;
    struct solution solution = {allocate(size * size), allocate(options->steps), 0};
    float *now = allocate(width * width), *next = allocate(width * width);

    for (unsigned row = 0; row < width; row++)
        for (unsigned column = 0; column < width; column++)
            if (row == 0 || row > size || column == 0 || column > size)
                now[row * width + column] = next[row * width + column] = border(row, column);
    for (unsigned number = 0; number < options->steps; number++) {
        float *const last = now;

        for (size_t row = 1; row <= size; row++)
            for (size_t i = row * width + 1; i <= row * width + size; i++) {
                const float mean = 0.25f * ((now[i - width] + now[i + width]) + (now[i - 1] + now[i + 1]));
                const float change = mean > now[i] ? mean - now[i] : now[i] - mean;

                next[i] = mean;
                solution.changes[number] = change > solution.changes[number] ? change : solution.changes[number];
            }
        now = next;
        next = last;
    }
    for (size_t row = 0; row < size; row++)
        memcpy(solution.plate + row * size, now + (row + 1) * width + 1, size * sizeof(float));
    free(now);
    free(next);
    return solution;
}

static size_t differences(const struct solution *a, const struct solution *b, const struct options *options)
{
    size_t n = 0;

    for (size_t i = 0; i < (size_t)options->size * options->size; i++)
        n += memcmp(&a->plate[i], &b->plate[i], sizeof(float)) != 0;
    for (size_t i = 0; i < options->steps; i++)
        n += memcmp(&a->changes[i], &b->changes[i], sizeof(float)) != 0;
    return n;
}

static void solution_finish(struct solution *solution)
{
    free(solution->plate);
    free(solution->changes);
}

/* ---- start ---- */

static struct options read_options(int argc, char **argv)
{
    static char ptx[4096];
    struct options options = {.ptx = ptx, .size = 256, .steps = 200};

    snprintf(ptx, sizeof ptx, "%s", example_beside("ptx/mpi_jacobi.ptx"));
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(argv[i], "--staged"))
            options.is_staged = true;
        else if (!strcmp(argv[i], "--direct"))
            options.is_direct = true;
        else if (value && !strcmp(argv[i], "--ptx"))
            options.ptx = argv[++i];
        else if (value && !strcmp(argv[i], "--size"))
            options.size = (unsigned)strtoul(argv[++i], NULL, 0);
        else if (value && !strcmp(argv[i], "--steps"))
            options.steps = (unsigned)strtoul(argv[++i], NULL, 0);
        else
            fail("usage: mpi_jacobi [--ptx FILE] [--size N] [--steps N] [--staged | --direct]");
    }
    if (!options.size || options.size > 16384 || !options.steps)
        fail("--size is from 1 to 16384, --steps at least 1");
    return options;
}

/* The ranks of a machine share its devices in turn. */
static CUdevice device_of_rank(void)
{
    MPI_Comm machine;
    CUdevice device;
    int rank, n_devices;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &rank);
    MPI_Comm_free(&machine);
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&n_devices));
    CHECK(cuDeviceGet(&device, rank % n_devices));
    return device;
}

/* Whether MPI can be given device pointers: it was built with CUDA, or the device uses the host's page tables, so that to MPI they are
 * pointers like any other. */
static bool mpi_reads_device(CUdevice device)
{
    int shares_page_tables;

#if defined MPIX_CUDA_AWARE_SUPPORT
    if (MPIX_Query_cuda_support())
        return true;
#endif
    CHECK(cuDeviceGetAttribute(&shares_page_tables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, device));
    return shares_page_tables;
}

static CUmodule device_init(struct device *device, const char *ptx)
{
    char *text;
    size_t length;
    CUmodule module;

    text = example_read_file(ptx, &length);
    CHECK(cuModuleLoadData(&module, text));
    free(text);
    CHECK(cuModuleGetFunction(&device->jacobi, module, "jacobi"));
    CHECK(cuStreamCreate(&device->edge_stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&device->inner_stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&device->edges_done, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&device->inner_done, CU_EVENT_DISABLE_TIMING));
    return module;
}

static void device_finish(struct device *device, CUmodule module)
{
    CHECK(cuEventDestroy(device->edges_done));
    CHECK(cuEventDestroy(device->inner_done));
    CHECK(cuStreamDestroy(device->edge_stream));
    CHECK(cuStreamDestroy(device->inner_stream));
    CHECK(cuModuleUnload(module));
}

/* Rank 0 compares with what one rank computes, and with the CPU. Returns the number of differences. */
static size_t verify(const struct device *device, const struct options *options, const struct solution *all, int n_ranks)
{
    struct solution one = solve(device, MPI_COMM_SELF, options), cpu = solve_on_cpu(options);
    const size_t errors = differences(all, &one, options) + differences(all, &cpu, options);

    printf("mpi_jacobi: %d ranks, %u x %u, %u steps, %s: %.3f ms a step (one rank: %.3f); last change %g; %s\n", n_ranks, options->size,
           options->size, options->steps, options->is_staged ? "rows through host memory" : "device pointers to MPI",
           all->seconds / options->steps * 1e3, one.seconds / options->steps * 1e3, all->changes[options->steps - 1],
           errors ? "WRONG" : "equal to one rank and to the CPU");
    solution_finish(&one);
    solution_finish(&cpu);
    return errors;
}

int main(int argc, char **argv)
{
    unsigned long errors = 0;
    int rank, n_ranks;
    CUcontext context;
    struct device device;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    struct options options = read_options(argc, argv);
    const CUdevice chosen = device_of_rank();

    CHECK(cuDevicePrimaryCtxRetain(&context, chosen));
    CHECK(cuCtxSetCurrent(context));
    options.is_staged = options.is_staged || (!options.is_direct && !mpi_reads_device(chosen));
    CUmodule module = device_init(&device, options.ptx);
    struct solution all = solve(&device, MPI_COMM_WORLD, &options);
    if (rank == 0)
        errors = verify(&device, &options, &all, n_ranks);
    MPI_Bcast(&errors, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    solution_finish(&all);
    device_finish(&device, module);
    CHECK(cuDevicePrimaryCtxRelease(chosen));
    MPI_Finalize();
    return errors ? EXIT_FAILURE : EXIT_SUCCESS;
}
