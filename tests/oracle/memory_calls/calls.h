/* SPDX-License-Identifier: Apache-2.0 */
/* Random sequences of memory calls, as text that two drivers can be compared by: what the files of calls share.
 *
 * A sequence follows from its number alone. What it does next may hang on results, since all of them are in the trace: up to the first
 * difference both drivers have the same. So every line says all that later lines hang on, in words that mean the same to any driver:
 * addresses as objects and distances, handles as objects, contents as checksums. */
#ifndef CUTTLE_TESTS_MEMORY_CALLS_H
#define CUTTLE_TESTS_MEMORY_CALLS_H

#include <cuda.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLS_KIB ((size_t)1 << 10)
#define CALLS_MIB ((size_t)1 << 20)
#define CALLS_PAGE ((size_t)4096)

enum calls_kind {
    CALLS_DEVICE = 1 << 0,     /* cuMemAlloc, cuMemAllocPitch */
    CALLS_HOST = 1 << 1,       /* cuMemHostAlloc */
    CALLS_REGISTERED = 1 << 2, /* cuMemHostRegister: a part of the window */
    CALLS_MANAGED = 1 << 3,
    CALLS_POOLED = 1 << 4,   /* cuMemAllocAsync and the like */
    CALLS_RESERVED = 1 << 5, /* cuMemAddressReserve */
    CALLS_MAPPED = 1 << 6,   /* cuMemMap, within a reservation */
    CALLS_OPENED = 1 << 7,   /* cuIpcOpenMemHandle, cuMemPoolImportPointer */
    CALLS_PHYSICAL = 1 << 8, /* from here on what has no address */
    CALLS_POOL = 1 << 9,
    CALLS_ARRAY = 1 << 10,
    CALLS_LEVEL = 1 << 11, /* an array that belongs to a mipmapped one */
    CALLS_MIPMAP = 1 << 12,
    CALLS_ADDRESSED = CALLS_PHYSICAL - 1,
    CALLS_BY_DEVICE = CALLS_DEVICE | CALLS_HOST | CALLS_REGISTERED | CALLS_MANAGED | CALLS_POOLED | CALLS_MAPPED,
    CALLS_BY_HOST = CALLS_HOST | CALLS_REGISTERED | CALLS_MANAGED,
};

struct calls_object {
    enum calls_kind kind;
    unsigned number;
    bool live;
    bool plain;       /* contents are known and the whole of it can be read */
    uint64_t address; /* for the host, where there are two */
    size_t size;
    uint64_t handle; /* whatever it is */
    unsigned made;   /* objects that there were before it went; others may have its address since */
    CUcontext context;
    const struct calls_object *parent; /* levels: the mipmapped array */
    CUDA_ARRAY3D_DESCRIPTOR shape;     /* arrays */
    size_t texel;                      /* arrays: bytes, or 0 where texels come in blocks or planes */
};

/* Host memory that is always there. */
enum calls_area { CALLS_HEAP, CALLS_WINDOW, CALLS_CONSTANT, CALLS_HOLE, CALLS_AREAS };
#define CALLS_AREA_BYTES (256 * CALLS_KIB)

enum { CALLS_MAX_OBJECTS = 64, CALLS_CONTEXTS = 3, CALLS_STREAMS = 6 };

struct calls_row;

struct calls {
    uint64_t random;
    const struct calls_row *row;
    struct calls_object objects[CALLS_MAX_OBJECTS];
    unsigned n_objects;
    CUcontext contexts[CALLS_CONTEXTS]; /* the primary one, another, and one that comes and goes */
    CUstream streams[CALLS_STREAMS];
    unsigned char *areas[CALLS_AREAS];
    size_t granule; /* of virtual memory, for either driver */
    bool check;     /* results that no manual knows are failures */
    bool failed;
};

/* One kind of call. */
struct calls_row {
    const char *name;
    void (*call)(struct calls *);
    unsigned group, weight;
    bool creates;
    const char *codes; /* that it may give beside those that all may */
};

/* ---- choices ---- */
uint64_t calls_number(struct calls *c, uint64_t below);
bool calls_chance(struct calls *c, unsigned percent);
size_t calls_pick_of(struct calls *c, const size_t *list, size_t count);
#define CALLS_PICK(c, ...) calls_pick_of(c, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

/* A live object of these kinds, or NULL. */
struct calls_object *calls_object(struct calls *c, unsigned kinds);
CUstream calls_stream(struct calls *c);

/* Where a call is to work. */
struct calls_place {
    uint64_t at;
    size_t room; /* to the end of its object; 0 outside of any */
    const struct calls_object *object;
    char text[64];
};
enum calls_oddity {
    CALLS_SAFE,  /* within an object of the kinds; if there is none, in the heap */
    CALLS_EDGES, /* also at its end, before it, unaligned */
    CALLS_ODD    /* also null, wild, gone, of other kinds, of the host */
};
struct calls_place calls_place(struct calls *c, unsigned kinds, enum calls_oddity odd);

/* Within an area, with at least 128 KiB of room. */
struct calls_place calls_host_place(struct calls *c, enum calls_area area);

/* How many bytes to work on: mostly within the room, at times all of it, none, or a little more. */
size_t calls_bytes(struct calls *c, size_t room);

/* ---- objects ---- */
struct calls_object *calls_add(struct calls *c, enum calls_kind kind, uint64_t address, size_t size, uint64_t handle);

/* What begins there, or has this handle, is gone. */
void calls_gone_at(struct calls *c, unsigned kinds, uint64_t address);
void calls_gone(struct calls *c, struct calls_object *object);

/* ---- the trace ---- */
/* Begins a line: the call with its arguments, before it is made. */
void calls_begin(struct calls *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends it. True if the call succeeded. */
bool calls_end(struct calls *c, CUresult r);

/* What the call gave, between the two. */
void calls_say(struct calls *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The result, without the end of the line; for calls that gave something. True if they succeeded. */
bool calls_result(struct calls *c, CUresult r);
void calls_line(struct calls *c);

/* " name=address", as an object and a distance. */
void calls_say_address(struct calls *c, const char *name, uint64_t address);
void calls_say_context(struct calls *c, const char *name, CUcontext context);
void calls_say_handle(struct calls *c, const char *name, unsigned kinds, uint64_t handle);
const char *calls_stream_name(const struct calls *c, CUstream stream);
const char *calls_object_name(char text[16], const struct calls_object *o);

/* A checksum of what is there now, as the device or the host sees it. */
void calls_say_contents(struct calls *c, CUdeviceptr at, size_t bytes);
void calls_say_host_contents(struct calls *c, const void *at, size_t bytes);
void calls_say_array_contents(struct calls *c, const struct calls_object *array);

/* Waits for asynchronous work; says so if that failed. */
void calls_wait(struct calls *c, CUstream stream);

/* Gives all bytes the object's own value. */
void calls_fill(struct calls *c, struct calls_object *o);

/* ---- the process ---- */
bool calls_start(struct calls *c);
void calls_begin_sequence(struct calls *c, uint64_t number);

/* Frees what is left. False if the context is no longer good. */
bool calls_end_sequence(struct calls *c);

/* ---- the table, calls.def ---- */
extern const struct calls_row calls_rows[];
extern const size_t calls_row_count;

/* ---- comparing ---- */
int calls_compare(const char *of_native, const char *of_ours, bool all);

#endif
