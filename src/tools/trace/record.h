/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the tracing library (src/tools/interpose) writes and `cuttle` reads, one for each process, in a folder that lasts as long as the
 * command. Both are built from the same tables of the API, so the files need no version.
 *
 * A file is a struct trace_file in its first page, then chunks. A chunk belongs to one thread, which alone writes to it: records behind one another, of which
 * the first `used` bytes count. It is memory that the process shares with the file, so what was recorded survives the process however it ends. */
#ifndef CT_TOOLS_RECORD_H
#define CT_TOOLS_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_PAGE_BYTES 4096u
#define TRACE_CHUNK_BYTES (256u << 10)
#define TRACE_FILE_BYTES_MAX (4ull << 30) /* a process that would write more is no longer recorded */
#define TRACE_RECORD_BYTES_MAX (16u << 10)
#define TRACE_TEXT_BYTES_MAX 1024u
#define TRACE_MAGIC 0x43415254u /* "TRAC" */

/* How programs that run under `cuttle trace` know about it. */
#define TRACE_FOLDER_VARIABLE "CUTTLE_TRACE_FOLDER" /* where the files are; the tracing library forwards calls only if it is not set */
#define TRACE_DRIVER_VARIABLE "CUTTLE_TRACE_DRIVER" /* path of the libcuda.so.1 that is called */

/* Where the tracing library is, in the folder of the library. */
#define TRACE_LIBRARY_FOLDER "trace"

struct trace_file {
    uint32_t magic;
    uint32_t process;
    _Atomic uint64_t lost;       /* records that were not written: the disk or the file was full */
    _Atomic uint64_t unmeasured; /* launches, copies and fills without a TRACE_SPAN, as they did not end or too many did not */
    char program[1024];          /* path of the executable */
};

struct trace_chunk {
    _Atomic uint32_t
        used; /* bytes of records behind this header. release: after a record is complete, for readers while the process still runs */
    uint32_t thread;
    char thread_name[16];
};

enum trace_kind {
    TRACE_BEGIN,  /* a call begins: its arguments, as far as they are known then */
    TRACE_END,    /* it has returned: what it wrote, and its result */
    TRACE_SPAN,   /* work on a device, measured with events: fields TRACE_WORK */
    TRACE_KERNEL, /* what the driver says of the kernel that the call of this correlation launched: TRACE_FACTS */
    TRACE_DEVICE, /* what it says of a device: TRACE_NAME, TRACE_FACTS */
    TRACE_BUILD,  /* a compilation: TRACE_NAME of the compiler and of the kernel */
};

/* Sizes are multiples of 8, and so are offsets. Times are nanoseconds of CLOCK_MONOTONIC. */
struct trace_record {
    uint32_t size_bytes;  /* with this header and the fields */
    uint16_t kind;        /* enum trace_kind */
    uint16_t symbol;      /* index in entry_points.def */
    int32_t result;       /* of TRACE_END */
    uint32_t device;      /* ordinal, of TRACE_DEVICE */
    uint64_t begin_ns;    /* of TRACE_BEGIN, TRACE_SPAN, TRACE_BUILD */
    uint64_t end_ns;      /* of TRACE_END, TRACE_SPAN, TRACE_BUILD */
    uint64_t correlation; /* number of the call in its process, from 1; joins the records of a call */
};

enum trace_field_kind {
    TRACE_VALUE,   /* an argument itself */
    TRACE_POINTEE, /* what it points to */
    TRACE_TEXT,    /* the text that it leads to */
    TRACE_PARAM,   /* a parameter of a kernel: the first bytes of it; `argument` counts these */
    TRACE_NAME,    /* of a kernel, device or compiler */
    TRACE_WORK,    /* struct trace_work */
    TRACE_FACTS,   /* struct trace_kernel_facts or trace_device_facts */
};

/* Followed by the bytes, padded to a multiple of 8. */
struct trace_field {
    uint16_t kind;     /* enum trace_field_kind */
    uint16_t argument; /* index of the parameter */
    uint32_t size_bytes;
};

enum trace_work_kind {
    TRACE_WORK_KERNEL,
    TRACE_WORK_GRAPH,
    TRACE_WORK_HOST_TO_DEVICE,
    TRACE_WORK_DEVICE_TO_HOST,
    TRACE_WORK_DEVICE_TO_DEVICE,
    TRACE_WORK_HOST_TO_HOST,
    TRACE_WORK_FILL,
};

/* What the call of this correlation made a device do. */
struct trace_work {
    uint32_t kind;   /* enum trace_work_kind */
    uint32_t device; /* ordinal */
    uint64_t context, stream;
    uint64_t size_bytes; /* of a copy or a fill; 0: unknown */
};

/* Of a launch: the kernel as the driver compiled it, and how many blocks of this shape fit. Negative: the driver does not say. */
struct trace_kernel_facts {
    uint64_t function;
    uint32_t block_threads, dynamic_shared_bytes;
    int32_t registers, static_shared_bytes, local_bytes, blocks_per_multiprocessor;
};

struct trace_device_facts {
    int32_t threads_per_multiprocessor, registers_per_multiprocessor, shared_bytes_per_multiprocessor, blocks_per_multiprocessor,
        warp_lanes;
};

#endif
