/* SPDX-License-Identifier: Apache-2.0 */
/* Choices, objects and places of a sequence; initialization of a process of sequences. */
#include "calls.h"

#include "../../splitmix.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- choices ---- */
uint64_t calls_number(struct calls *c, uint64_t below)
{
    return splitmix_next(&c->random) % below;
}

bool calls_chance(struct calls *c, unsigned percent)
{
    return calls_number(c, 100) < percent;
}

size_t calls_pick_of(struct calls *c, const size_t *list, size_t count)
{
    return list[calls_number(c, count)];
}

struct calls_object *calls_object(struct calls *c, unsigned kinds)
{
    struct calls_object *found = NULL;
    uint64_t seen = 0;

    for (unsigned i = 0; i < c->n_objects; i++)
        if (c->objects[i].live && (c->objects[i].kind & kinds) && calls_number(c, ++seen) == 0)
            found = &c->objects[i];
    return found;
}

CUstream calls_stream(struct calls *c)
{
    return c->streams[calls_number(c, calls_chance(c, 5) ? CALLS_STREAMS : CALLS_STREAMS - 1)]; /* the last is of another context */
}

size_t calls_bytes(struct calls *c, size_t room)
{
    const size_t some = room ? (size_t)calls_number(c, room < 64 * CALLS_KIB ? room : 64 * CALLS_KIB) + 1 : 16;

    switch (calls_number(c, 16)) {
    case 0:
        return 0;
    case 1:
        return room + 1;
    case 2:
        return room + CALLS_PICK(c, 4, 512, 64 * CALLS_KIB, 4 * CALLS_MIB);
    case 3:
    case 4:
        return room;
    case 5:
    case 6:
    case 7:
        return some;
    default:
        return some > 16 ? some & ~(size_t)15 : some;
    }
}

/* ---- objects ---- */
struct calls_object *calls_add(struct calls *c, enum calls_kind kind, uint64_t address, size_t size, uint64_t handle)
{
    struct calls_object *o;

    if (c->n_objects == CALLS_MAX_OBJECTS) {
        fprintf(stderr, "too many objects\n");
        abort();
    }
    o = &c->objects[c->n_objects];
    *o = (struct calls_object){.kind = kind, .number = c->n_objects++, .live = true, .address = address, .size = size, .handle = handle};
    cuCtxGetCurrent(&o->context);
    return o;
}

void calls_mark_freed(struct calls *c, struct calls_object *object)
{
    object->live = false;
    object->made = c->n_objects;
    for (unsigned i = 0; i < c->n_objects; i++)
        if (c->objects[i].live && c->objects[i].parent == object)
            c->objects[i].live = false;
}

void calls_mark_freed_at(struct calls *c, unsigned kinds, uint64_t address)
{
    for (unsigned i = 0; i < c->n_objects; i++)
        if (c->objects[i].live && (c->objects[i].kind & kinds) && c->objects[i].address == address)
            calls_mark_freed(c, &c->objects[i]);
}

/* ---- places ---- */
static const char *const area_names[CALLS_AREAS] = {"heap", "window", "constant", "hole"};

struct calls_place calls_host_place(struct calls *c, enum calls_area area)
{
    const size_t mask = CALLS_PICK(c, 0, 3, 15, CALLS_PAGE - 1, CALLS_PAGE - 1);
    const size_t offset = calls_chance(c, 50) ? 0 : (size_t)calls_number(c, 128 * CALLS_KIB) & ~mask;
    struct calls_place place = {.at = (uintptr_t)c->areas[area] + offset, .room = CALLS_AREA_BYTES - offset};

    snprintf(place.text, sizeof place.text, "%s+%zu", area_names[area], offset);
    return place;
}

static struct calls_place wild_place(struct calls *c)
{
    struct calls_place place = {.at = CALLS_PICK(c, 0, 0, 0, 1, 0x1000, (size_t)1 << 46, 0xdeadbeef00000000U, SIZE_MAX)};

    snprintf(place.text, sizeof place.text, "%#llx", (unsigned long long)place.at);
    return place;
}

/* A freed object whose address cannot have been reused since. */
static const struct calls_object *freed_object(const struct calls *c)
{
    for (unsigned i = c->n_objects; i-- > 0;)
        if (!c->objects[i].live && (c->objects[i].kind & CALLS_ADDRESSED) && c->objects[i].made == c->n_objects)
            return &c->objects[i];
    return NULL;
}

static int64_t offset_in(struct calls *c, size_t size, enum calls_place_choice odd)
{
    const int64_t within = (int64_t)calls_number(c, size);

    switch (calls_number(c, 30)) {
    case 0:
    case 1:
    case 8:
    case 9:
        return within & ~(int64_t)15;
    case 2:
        return within & ~(int64_t)3;
    case 3:
        return within;
    case 4:
        return (int64_t)size / 2;
    case 5:
        return (int64_t)size - 1;
    case 6:
        return odd == CALLS_SAFE ? 0 : (int64_t)size;
    case 7:
        return odd == CALLS_SAFE ? 0 : -1;
    default:
        return 0;
    }
}

static struct calls_place place_in(struct calls *c, const struct calls_object *o, enum calls_place_choice odd)
{
    const int64_t offset = offset_in(c, o->size, odd);
    struct calls_place place = {.at = o->address + (uint64_t)offset, .object = o};
    char name[16];

    if (offset >= 0 && (size_t)offset < o->size && o->live)
        place.room = o->size - (size_t)offset;
    if (offset >= 0 && (size_t)offset != o->size)
        snprintf(place.text, sizeof place.text, "%s%s+%lld", calls_object_name(name, o), o->live ? "" : "(gone)", (long long)offset);
    else
        snprintf(place.text, sizeof place.text, "%s%s+%s", calls_object_name(name, o), o->live ? "" : "(gone)",
                 offset < 0 ? "before" : "end");
    return place;
}

struct calls_place calls_place(struct calls *c, unsigned kinds, enum calls_place_choice odd)
{
    const struct calls_object *o;

    if (odd == CALLS_ANYTHING && calls_chance(c, 4))
        return wild_place(c);
    if (odd == CALLS_ANYTHING && calls_chance(c, 3))
        return calls_host_place(c, (enum calls_area)calls_number(c, CALLS_AREAS));
    if (odd == CALLS_ANYTHING && calls_chance(c, 25) && (o = freed_object(c)))
        return place_in(c, o, CALLS_SAFE);
    if (odd == CALLS_ANYTHING && calls_chance(c, 15))
        kinds = CALLS_ADDRESSED;
    o = calls_object(c, kinds);
    if (!o && odd == CALLS_ANYTHING)
        o = calls_object(c, CALLS_ADDRESSED);
    if (o)
        return place_in(c, o, odd);
    return odd == CALLS_ANYTHING ? wild_place(c) : calls_host_place(c, CALLS_HEAP);
}

/* ---- the process ---- */
static bool map_areas(struct calls *c)
{
    char name[] = "/tmp/memory_calls_XXXXXX";
    const int file = mkstemp(name);
    bool fine = file >= 0 && unlink(name) == 0 && ftruncate(file, (off_t)CALLS_AREA_BYTES) == 0;

    for (enum calls_area i = 0; i < CALLS_AREAS && fine; i++) {
        const int access = i == CALLS_HOLE ? PROT_NONE : i == CALLS_CONSTANT ? PROT_READ : PROT_READ | PROT_WRITE;
        void *at = mmap(NULL, CALLS_AREA_BYTES, access, i == CALLS_CONSTANT ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS,
                        i == CALLS_CONSTANT ? file : -1, 0);

        c->areas[i] = at;
        fine = at != MAP_FAILED;
    }
    if (file >= 0)
        close(file);
    return fine;
}

static bool make_streams(struct calls *c)
{
    c->streams[1] = CU_STREAM_LEGACY;
    c->streams[2] = CU_STREAM_PER_THREAD;
    return cuCtxCreate(&c->contexts[1], NULL, 0, 0) == CUDA_SUCCESS && cuStreamCreate(&c->streams[5], 0) == CUDA_SUCCESS &&
           cuCtxSetCurrent(c->contexts[0]) == CUDA_SUCCESS && cuStreamCreate(&c->streams[3], 0) == CUDA_SUCCESS &&
           cuStreamCreate(&c->streams[4], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

bool calls_start(struct calls *c)
{
    c->granule = 2 * CALLS_MIB; /* NVIDIA's driver requires this; ours accepts it, too */
    return map_areas(c) && cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&c->contexts[0], 0) == CUDA_SUCCESS && make_streams(c);
}

void calls_begin_sequence(struct calls *c, uint64_t number)
{
    c->random = number * 0x2545f4914f6cdd1dU + 0x1234567;
    c->n_objects = 0;
    for (size_t i = 0; i < CALLS_AREA_BYTES; i++)
        c->areas[CALLS_HEAP][i] = (unsigned char)(i * 7 + i / 253), c->areas[CALLS_WINDOW][i] = (unsigned char)(i * 11 + i / 241);
}

static CUresult end_object(struct calls_object *o)
{
    switch (o->kind) {
    case CALLS_DEVICE:
    case CALLS_MANAGED:
    case CALLS_POOLED:
        return cuMemFree(o->address);
    case CALLS_HOST:
        return cuMemFreeHost((void *)(uintptr_t)o->address);
    case CALLS_REGISTERED:
        return cuMemHostUnregister((void *)(uintptr_t)o->address);
    case CALLS_RESERVED:
        return cuMemAddressFree(o->address, o->size);
    case CALLS_MAPPED:
        return cuMemUnmap(o->address, o->size);
    case CALLS_OPENED:
        return cuMemFree(o->address);
    case CALLS_PHYSICAL:
        return cuMemRelease(o->handle);
    case CALLS_POOL:
        return cuMemPoolDestroy((CUmemoryPool)(uintptr_t)o->handle);
    case CALLS_ARRAY:
        return cuArrayDestroy((CUarray)(uintptr_t)o->handle);
    case CALLS_MIPMAP:
        return cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)o->handle);
    default:
        return CUDA_SUCCESS;
    }
}

static void leave_contexts(struct calls *c)
{
    CUcontext context = NULL;

    while (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context && cuCtxPopCurrent(&context) == CUDA_SUCCESS)
        ;
    cuCtxSetCurrent(c->contexts[0]);
}

bool calls_end_sequence(struct calls *c)
{
    static const unsigned order[] = {CALLS_MAPPED, CALLS_ADDRESSED & ~CALLS_RESERVED, CALLS_RESERVED, ~0U};
    CUmemoryPool pool;
    bool good;

    leave_contexts(c);
    good = cuCtxSynchronize() == CUDA_SUCCESS;
    for (size_t k = 0; k < sizeof order / sizeof *order && good; k++)
        for (unsigned i = c->n_objects; i-- > 0;) {
            struct calls_object *o = &c->objects[i];
            char name[16];

            if (!o->live || !(o->kind & order[k]))
                continue;
            calls_begin(c, "(end of %s", calls_object_name(name, o));
            calls_end(c, end_object(o));
            o->live = false;
        }
    if (c->contexts[2])
        cuCtxDestroy(c->contexts[2]);
    c->contexts[2] = NULL;
    cuCtxSetCurrent(c->contexts[0]);
    if (cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS)
        cuMemPoolTrimTo(pool, 0);
    return cuCtxSynchronize() == CUDA_SUCCESS && good;
}
