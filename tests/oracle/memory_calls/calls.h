/* SPDX-License-Identifier: Apache-2.0 */
/* Random sequences of memory calls, written as text by which two drivers can be compared: the interface that the files of calls share.
 *
 * A sequence is determined by its number. Later calls may depend on earlier results, since all of them are in the trace: up to the first
 * difference both drivers have the same results. Therefore every line contains everything that later lines depend on, in terms that have
 * the same meaning for any driver: addresses as objects and offsets, handles as objects, contents as checksums. */
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
    CALLS_OPENED = 1 << 7,   /* the following kinds have no address */
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
    bool plain;       /* the contents are known and all of it can be read */
    uint64_t address; /* the host's address, if there are two */
    size_t size;
    uint64_t handle; /* of any type */
    unsigned made;   /* the number of objects at the time it was freed; later ones may have its address */
    CUcontext context;
    const struct calls_object *parent; /* levels: the mipmapped array */
    CUDA_ARRAY3D_DESCRIPTOR shape;     /* arrays */
    size_t texel;                      /* arrays: bytes, or 0 where texels come in blocks or planes */
};

/* Host memory that always exists. */
enum calls_area { CALLS_HEAP, CALLS_WINDOW, CALLS_CONSTANT, CALLS_HOLE, CALLS_AREAS };
#define CALLS_AREA_BYTES (256 * CALLS_KIB)

enum { CALLS_MAX_OBJECTS = 64, CALLS_CONTEXTS = 3, CALLS_STREAMS = 6 };

struct calls_row;

struct calls {
    uint64_t random;
    const struct calls_row *row;
    struct calls_object objects[CALLS_MAX_OBJECTS];
    unsigned n_objects;
    CUcontext contexts[CALLS_CONTEXTS]; /* the primary one, another one, and one that is created and destroyed repeatedly */
    CUstream streams[CALLS_STREAMS];
    unsigned char *areas[CALLS_AREAS];
    size_t granule; /* of virtual memory, valid for both drivers */
    bool check;     /* results that the manual does not document are failures */
    bool failed;
};

/* One function of the API. */
struct calls_row {
    const char *name;
    void (*call)(struct calls *);
    unsigned group, weight;
    bool creates;
    const char *codes; /* possible error codes in addition to the common ones */
};

/* ---- choices ---- */
uint64_t calls_number(struct calls *c, uint64_t below);
bool calls_chance(struct calls *c, unsigned percent);
size_t calls_pick_of(struct calls *c, const size_t *list, size_t count);
#define CALLS_PICK(c, ...) calls_pick_of(c, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

/* Returns a random live object of these kinds, or NULL. */
struct calls_object *calls_object(struct calls *c, unsigned kinds);
CUstream calls_stream(struct calls *c);

/* The address on which a call operates. */
struct calls_place {
    uint64_t at;
    size_t room; /* bytes to the end of its object; 0 outside of any object */
    const struct calls_object *object;
    char text[64];
};
enum calls_place_choice {
    CALLS_SAFE,    /* within an object of the kinds; in the heap if there is none */
    CALLS_EDGES,   /* also at its end, before it, unaligned */
    CALLS_ANYTHING /* also null, invalid, freed, of other kinds, of the host */
};
struct calls_place calls_place(struct calls *c, unsigned kinds, enum calls_place_choice odd);

/* Returns a place within an area, with at least 128 KiB of room. */
struct calls_place calls_host_place(struct calls *c, enum calls_area area);

/* Returns a number of bytes: mostly within the room, sometimes all of it, none, or slightly more. */
size_t calls_bytes(struct calls *c, size_t room);

/* ---- objects ---- */
struct calls_object *calls_add(struct calls *c, enum calls_kind kind, uint64_t address, size_t size, uint64_t handle);

/* Mark as freed: the objects that begin at the address, or a single object. */
void calls_mark_freed_at(struct calls *c, unsigned kinds, uint64_t address);
void calls_mark_freed(struct calls *c, struct calls_object *object);

/* ---- the trace ---- */
/* Begins a line with the call and its arguments, before the call is made. */
void calls_begin(struct calls *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the line with the result. Returns true if the call succeeded. */
bool calls_end(struct calls *c, CUresult r);

/* Appends output of the call, between the two. */
void calls_append(struct calls *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the result without ending the line, for calls with output. Returns true if the call succeeded. */
bool calls_result(struct calls *c, CUresult r);
void calls_line(struct calls *c);

/* Appends " name=address", as an object and an offset. */
void calls_append_address(struct calls *c, const char *name, uint64_t address);
void calls_append_context(struct calls *c, const char *name, CUcontext context);
void calls_append_handle(struct calls *c, const char *name, unsigned kinds, uint64_t handle);
const char *calls_stream_name(const struct calls *c, CUstream stream);
const char *calls_object_name(char text[16], const struct calls_object *o);

/* Appends a checksum of the current contents, as the device or the host sees them. */
void calls_append_contents(struct calls *c, CUdeviceptr at, size_t bytes);
void calls_append_host_contents(struct calls *c, const void *at, size_t bytes);
void calls_append_array_contents(struct calls *c, const struct calls_object *array);

/* Waits for asynchronous work; appends an error if that failed. */
void calls_wait(struct calls *c, CUstream stream);

/* Sets all bytes to a value that depends on the object. */
void calls_fill(struct calls *c, struct calls_object *o);

/* ---- the process ---- */
bool calls_start(struct calls *c);
void calls_begin_sequence(struct calls *c, uint64_t number);

/* Frees the remaining objects. Returns false if the context is no longer usable. */
bool calls_end_sequence(struct calls *c);

/* ---- the table, calls.def ---- */
extern const struct calls_row calls_rows[];
extern const size_t calls_row_count;

/* ---- comparison ---- */
int calls_compare(const char *of_native, const char *of_ours, bool all);

#endif
