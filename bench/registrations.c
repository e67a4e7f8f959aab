/* SPDX-License-Identifier: Apache-2.0 */
/* Which mappings of the host cuMemHostRegister accepts: a line for each kind, with the result without flags and with
 * CU_MEMHOSTREGISTER_READ_ONLY. Runs on any libcuda.so.1. docs/devices.md ("Which host memory can be registered") contains the results.
 *
 *   bench_registrations [folder on a disk]      (default: the current one) */
#include "example.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGES 4
#define HUGE_PAGE ((size_t)2 << 20)
#define RW (PROT_READ | PROT_WRITE)
#define MANY_HUGE ((size_t)8 << 30)

/* The source of a mapping's bytes. */
enum source { ANONYMOUS, MEMFD, SHM, SHM_GONE, DISK, HUGE, HUGE_MEMFD, HUGE_NONE_LEFT, SHORT };

static const struct row {
    const char *name;
    enum source source;
    int flags, protection;
    int open; /* how the file is opened for the mapping */
} rows[] = {
    {"anonymous, private", ANONYMOUS, MAP_PRIVATE, RW, 0},
    {"anonymous, private, PROT_READ", ANONYMOUS, MAP_PRIVATE, PROT_READ, 0},
    {"anonymous, shared", ANONYMOUS, MAP_SHARED, RW, 0},
    {"anonymous, shared, PROT_READ", ANONYMOUS, MAP_SHARED, PROT_READ, 0},
    {"memfd, shared", MEMFD, MAP_SHARED, RW, O_RDWR},
    {"memfd, shared, PROT_READ", MEMFD, MAP_SHARED, PROT_READ, O_RDWR},
    {"/dev/shm, shared", SHM, MAP_SHARED, RW, O_RDWR},
    {"/dev/shm, shared, unlinked", SHM_GONE, MAP_SHARED, RW, O_RDWR},
    {"/dev/shm, shared, O_RDONLY", SHM, MAP_SHARED, PROT_READ, O_RDONLY},
    {"/dev/shm, private, O_RDONLY, PROT_READ", SHM, MAP_PRIVATE, PROT_READ, O_RDONLY},
    {"disk, shared", DISK, MAP_SHARED, RW, O_RDWR},
    {"disk, shared, PROT_READ", DISK, MAP_SHARED, PROT_READ, O_RDWR},
    {"disk, shared, O_RDONLY", DISK, MAP_SHARED, PROT_READ, O_RDONLY},
    {"disk, private", DISK, MAP_PRIVATE, RW, O_RDONLY},
    {"disk, private, PROT_READ", DISK, MAP_PRIVATE, PROT_READ, O_RDONLY},
    {"huge pages, private", HUGE, MAP_PRIVATE, RW, 0},
    {"huge pages, private, PROT_READ", HUGE, MAP_PRIVATE, PROT_READ, 0},
    {"huge pages, shared", HUGE, MAP_SHARED, RW, 0},
    {"huge pages, memfd, shared", HUGE_MEMFD, MAP_SHARED, RW, O_RDWR},
    {"huge pages, more than there are", HUGE_NONE_LEFT, MAP_PRIVATE, RW, 0},
    {"memfd, shared, mapped beyond its end", SHORT, MAP_SHARED, RW, O_RDWR},
    {"anonymous, private, PROT_NONE", ANONYMOUS, MAP_PRIVATE, PROT_NONE, 0},
};

struct mapping {
    char *pages; /* NULL: mappings of this kind are not available */
    size_t bytes;
    int file; /* -1: none */
    char name[512];
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t bytes_of(const struct row *row)
{
    if (row->source == HUGE_NONE_LEFT)
        return MANY_HUGE;
    return row->source == HUGE || row->source == HUGE_MEMFD ? HUGE_PAGE : PAGES * page_bytes();
}

/* Creates a file of whole pages, opened as the row says; its name exists until the mapping is removed. */
static void open_named(const char *folder, const struct row *row, struct mapping *mapping)
{
    static const char zeros[1 << 16];
    int file;

    snprintf(mapping->name, sizeof mapping->name, "%s/cuttle_registrations_XXXXXX", folder);
    if ((file = mkstemp(mapping->name)) < 0 || write(file, zeros, mapping->bytes) != (ssize_t)mapping->bytes)
        perror(mapping->name);
    mapping->file = open(mapping->name, row->open | O_CLOEXEC);
    close(file);
    if (row->source == SHM_GONE)
        unlink(mapping->name);
}

static void open_memory(const struct row *row, struct mapping *mapping)
{
    mapping->file = memfd_create("registrations", MFD_CLOEXEC | (row->source == HUGE_MEMFD ? MFD_HUGETLB : 0));
    if (mapping->file >= 0 && ftruncate(mapping->file, (off_t)(row->source == SHORT ? page_bytes() : mapping->bytes)))
        perror("ftruncate");
}

static int mapping_flags(const struct row *row)
{
    const bool huge = row->source == HUGE || row->source == HUGE_MEMFD || row->source == HUGE_NONE_LEFT;
    const bool anonymous = row->source == ANONYMOUS || row->source == HUGE || row->source == HUGE_NONE_LEFT;

    return row->flags | (huge ? MAP_HUGETLB : 0) | (anonymous ? MAP_ANONYMOUS : 0) | (row->source == HUGE_NONE_LEFT ? MAP_NORESERVE : 0);
}

static void make_mapping(const struct row *row, const char *disk, struct mapping *out)
{
    *out = (struct mapping){.bytes = bytes_of(row), .file = -1};
    if (row->source == MEMFD || row->source == HUGE_MEMFD || row->source == SHORT)
        open_memory(row, out);
    else if (row->open || row->source == SHM || row->source == DISK)
        open_named(row->source == DISK ? disk : "/dev/shm", row, out);
    out->pages = mmap(NULL, out->bytes, row->protection, mapping_flags(row), out->file, 0);
    if (out->pages == MAP_FAILED)
        out->pages = NULL;
}

static void drop_mapping(struct mapping *mapping)
{
    if (mapping->pages)
        munmap(mapping->pages, mapping->bytes);
    if (mapping->file >= 0)
        close(mapping->file);
    if (mapping->name[0])
        unlink(mapping->name);
}

/* The result of registering; on success also whether the device reads the bytes through the device pointer. */
static const char *try(const struct mapping *mapping, unsigned flags, CUdeviceptr device)
{
    const char *name = "?";
    uint32_t word = 1;
    CUdeviceptr at;
    CUresult r = cuMemHostRegister(mapping->pages, mapping->bytes, flags);

    if (r != CUDA_SUCCESS)
        return cuGetErrorName(r, &name) == CUDA_SUCCESS ? name + strlen("CUDA_ERROR_") : name;
    if (cuMemHostGetDevicePointer(&at, mapping->pages, 0) != CUDA_SUCCESS)
        name = "yes, no device pointer";
    else if (cuMemcpyDtoD(device, at, 4) != CUDA_SUCCESS || cuMemcpyDtoH(&word, device, 4) != CUDA_SUCCESS || word != 0)
        name = "yes, not readable";
    else
        name = "yes";
    CHECK(cuMemHostUnregister(mapping->pages));
    return name;
}

static void print_row(const struct row *row, const char *disk, CUdeviceptr device)
{
    const char *plain, *read_only;
    struct mapping mapping;

    make_mapping(row, disk, &mapping);
    plain = mapping.pages ? try(&mapping, 0, device) : "cannot be mapped";
    read_only = mapping.pages ? try(&mapping, CU_MEMHOSTREGISTER_READ_ONLY, device) : "";
    printf("| %-40s | %-22s | %-22s |\n", row->name, plain, read_only);
    fflush(stdout);
    drop_mapping(&mapping);
}

static void print_header(CUdevice device, const char *disk)
{
    int read_only = -1, registers = -1;
    char name[256] = "";
    struct statfs system;
    struct utsname os;

    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetAttribute(&read_only, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, device));
    CHECK(cuDeviceGetAttribute(&registers, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, device));
    printf("%s; Linux %s; %s has a file system of type %#lx; HOST_REGISTER_SUPPORTED %d, READ_ONLY_HOST_REGISTER_SUPPORTED %d\n", name,
           uname(&os) == 0 ? os.release : "?", disk, statfs(disk, &system) == 0 ? (unsigned long)system.f_type : 0, registers, read_only);
    printf("| %-40s | %-22s | %-22s |\n| --- | --- | --- |\n", "", "flags 0", "READ_ONLY");
}

int main(int argc, char **argv)
{
    const char *disk = argc > 1 ? argv[1] : ".";
    CUcontext context;
    CUdevice device;
    CUdeviceptr word;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate(&context, NULL, 0, device));
    CHECK(cuMemAlloc(&word, 4));
    print_header(device, disk);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_row(&rows[i], disk, word);
    CHECK(cuMemFree(word));
    CHECK(cuCtxDestroy(context));
    return 0;
}
