/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, and copies of boxes that involve arrays. */
#include "rows.h"

/* ---- descriptors ---- */
static const struct {
    CUarray_format format;
    unsigned channels; /* 0: any number */
    unsigned bytes;    /* bytes of a channel; 0: no plain texels */
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 0, 1}, {CU_AD_FORMAT_UNSIGNED_INT16, 0, 2}, {CU_AD_FORMAT_UNSIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_SIGNED_INT8, 0, 1},   {CU_AD_FORMAT_SIGNED_INT16, 0, 2},   {CU_AD_FORMAT_SIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_HALF, 0, 2},          {CU_AD_FORMAT_FLOAT, 0, 4},          {CU_AD_FORMAT_UNORM_INT8X1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X4, 4, 1},  {CU_AD_FORMAT_SNORM_INT16X2, 2, 2},  {CU_AD_FORMAT_NV12, 3, 0},
    {CU_AD_FORMAT_BC1_UNORM, 4, 0},     {CU_AD_FORMAT_BC7_UNORM, 4, 0},      {CU_AD_FORMAT_BC4_UNORM, 1, 0},
    {CU_AD_FORMAT_P010, 3, 0},          {(CUarray_format)0, 0, 1},           {(CUarray_format)4, 0, 1},
    {(CUarray_format)0x7f, 0, 1},
};
#define FORMATS (sizeof formats / sizeof *formats)

/* Returns the texel's size in bytes, or 0. */
static size_t some_texel(struct calls *c, CUarray_format *format, unsigned *channels)
{
    const size_t i = calls_number(c, calls_chance(c, 80) ? 8 : FORMATS);

    *format = formats[i].format;
    *channels =
        formats[i].channels && calls_chance(c, 90) ? formats[i].channels : (unsigned)CALLS_PICK(c, 1, 2, 4, 1, 2, 4, 1, 2, 4, 0, 3, 5);
    return formats[i].bytes * *channels;
}

/* Chooses sides that are likely to reveal errors in the computation of a box's size. */
static const size_t *some_sides(struct calls *c)
{
    static const size_t good[][3] = {{64, 0, 0}, {1, 0, 0},  {33, 0, 0}, {64, 64, 0}, {17, 5, 0},
                                     {1, 1, 0},  {16, 8, 4}, {8, 8, 8},  {1, 1, 1}};
    static const size_t odd[][3] = {{0, 0, 0},      {0, 16, 0},     {16, 0, 4},    {131072, 0, 0}, {131073, 0, 0},
                                    {16, 65537, 0}, {131073, 2, 0}, {8, 8, 16385}, {32768, 0, 2}};

    return calls_chance(c, 85) ? good[calls_number(c, sizeof good / sizeof *good)] : odd[calls_number(c, sizeof odd / sizeof *odd)];
}

static unsigned some_flags(struct calls *c)
{
    return calls_chance(c, 55) ? 0 : (unsigned)CALLS_PICK(c, 2, 2, 2, 1, 1, 3, 4, 5, 6, 8, 0x10, 0x20, 0x22, 0x40, 0x80, 0x100, 0x200);
}

/* ---- creation ---- */
static void fill(struct calls *c, struct calls_object *array)
{
    static unsigned char texels[64 * 1024];
    const size_t row = array->shape.Width * array->texel, rows = array->shape.Height ? array->shape.Height : 1;
    const size_t slices = array->shape.Depth ? array->shape.Depth : 1;
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = texels,
                         .srcPitch = row,
                         .srcHeight = rows,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = (CUarray)(uintptr_t)array->handle,
                         .WidthInBytes = row,
                         .Height = rows,
                         .Depth = slices};

    if (!array->texel || row * rows * slices > sizeof texels ||
        (array->shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
        return;
    for (size_t i = 0; i < row * rows * slices; i++)
        texels[i] = (unsigned char)(i * 5 + array->number);
    array->plain = cuMemcpy3D(&box) == CUDA_SUCCESS && cuStreamSynchronize(NULL) == CUDA_SUCCESS;
    if (!array->plain)
        calls_append(c, " not filled");
}

/* An array without known contents is of no use to later calls. */
static void keep_or_destroy(struct calls *c, CUarray handle, CUDA_ARRAY3D_DESCRIPTOR shape, size_t texel)
{
    struct calls_object *array = calls_add(c, CALLS_ARRAY, 0, 0, (uintptr_t)handle);

    array->shape = shape;
    array->texel = texel;
    fill(c, array);
}

void calls_array_create(struct calls *c)
{
    const size_t *sides = some_sides(c);
    CUDA_ARRAY_DESCRIPTOR d = {.Width = sides[0], .Height = sides[1]};
    const size_t texel = some_texel(c, &d.Format, &d.NumChannels);
    CUarray array = NULL;

    calls_begin(c, "cuArrayCreate(%zu x %zu, format %#x, channels %u", d.Width, d.Height, (unsigned)d.Format, d.NumChannels);
    if (calls_result(c, cuArrayCreate(&array, &d)))
        keep_or_destroy(c, array, (CUDA_ARRAY3D_DESCRIPTOR){.Width = d.Width, .Height = d.Height}, texel);
    calls_line(c);
}

#define SHAPE "%zu x %zu x %zu, format %#x, channels %u, flags %#x"
#define SHAPE_OF(d) (d).Width, (d).Height, (d).Depth, (unsigned)(d).Format, (d).NumChannels, (d).Flags

static CUDA_ARRAY3D_DESCRIPTOR some_shape(struct calls *c, size_t *texel)
{
    const size_t *sides = some_sides(c);
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = sides[0], .Height = sides[1], .Depth = sides[2], .Flags = some_flags(c)};

    if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) && calls_chance(c, 80))
        d.Height = d.Width = 16, d.Depth = d.Flags & CUDA_ARRAY3D_LAYERED ? 12 : 6;
    else if ((d.Flags & CUDA_ARRAY3D_LAYERED) && calls_chance(c, 80))
        d.Depth = 3;
    *texel = some_texel(c, &d.Format, &d.NumChannels);
    return d;
}

void calls_array_create_3d(struct calls *c)
{
    size_t texel;
    const CUDA_ARRAY3D_DESCRIPTOR d = some_shape(c, &texel);
    CUarray array = NULL;

    calls_begin(c, "cuArray3DCreate(" SHAPE, SHAPE_OF(d));
    if (calls_result(c, cuArray3DCreate(&array, &d)))
        keep_or_destroy(c, array, d, texel);
    calls_line(c);
}

void calls_mipmap_create(struct calls *c)
{
    size_t texel;
    const CUDA_ARRAY3D_DESCRIPTOR d = some_shape(c, &texel);
    const unsigned levels = (unsigned)CALLS_PICK(c, 1, 2, 3, 4, 0, 7, 20);
    CUmipmappedArray mipmap = NULL;
    struct calls_object *o;

    calls_begin(c, "cuMipmappedArrayCreate(" SHAPE ", levels %u", SHAPE_OF(d), levels);
    if (calls_end(c, cuMipmappedArrayCreate(&mipmap, &d, levels))) {
        o = calls_add(c, CALLS_MIPMAP, 0, 0, (uintptr_t)mipmap);
        o->shape = d;
        o->texel = texel;
    }
}

void calls_mipmap_level(struct calls *c)
{
    struct calls_object *o = calls_object(c, CALLS_MIPMAP), *level;
    const unsigned which = (unsigned)calls_number(c, 5);
    CUDA_ARRAY3D_DESCRIPTOR d = {0};
    CUarray array = NULL;
    char name[16];

    if (!o)
        return;
    calls_begin(c, "cuMipmappedArrayGetLevel(%s, %u", calls_object_name(name, o), which);
    if (calls_result(c, cuMipmappedArrayGetLevel(&array, (CUmipmappedArray)(uintptr_t)o->handle, which))) {
        level = calls_add(c, CALLS_LEVEL, 0, 0, (uintptr_t)array);
        level->parent = o;
        if (cuArray3DGetDescriptor(&d, array) == CUDA_SUCCESS) {
            calls_append(c, " " SHAPE, SHAPE_OF(d));
            level->shape = d, level->texel = o->texel;
            fill(c, level);
        }
    }
    calls_line(c);
}

static struct calls_object *some_array(struct calls *c, char name[16])
{
    struct calls_object *o = calls_chance(c, 96) ? calls_object(c, CALLS_ARRAY | CALLS_LEVEL) : NULL;

    snprintf(name, 16, "null");
    if (o)
        calls_object_name(name, o);
    return o;
}

static CUarray handle_of(const struct calls_object *o)
{
    return o ? (CUarray)(uintptr_t)o->handle : NULL;
}

void calls_array_destroy(struct calls *c)
{
    char name[16];
    struct calls_object *o = some_array(c, name);

    calls_begin(c, "cuArrayDestroy(%s", name);
    if (calls_end(c, cuArrayDestroy(handle_of(o))) && o)
        calls_mark_freed(c, o);
}

void calls_mipmap_destroy(struct calls *c)
{
    struct calls_object *o = calls_object(c, CALLS_MIPMAP);
    char name[16];

    if (!o)
        return;
    calls_begin(c, "cuMipmappedArrayDestroy(%s", calls_object_name(name, o));
    if (calls_end(c, cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)o->handle)))
        calls_mark_freed(c, o);
}

void calls_array_describe(struct calls *c)
{
    char name[16];
    const struct calls_object *o = some_array(c, name);
    CUDA_ARRAY_DESCRIPTOR flat = {0};
    CUDA_ARRAY3D_DESCRIPTOR d = {0};
    CUDA_ARRAY_SPARSE_PROPERTIES sparse = {0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUarray plane = NULL;

    switch (calls_number(c, 5)) {
    case 0:
        calls_begin(c, "cuArrayGetDescriptor(%s", name);
        if (calls_result(c, cuArrayGetDescriptor(&flat, handle_of(o))))
            calls_append(c, " %zu x %zu, format %#x, channels %u", flat.Width, flat.Height, (unsigned)flat.Format, flat.NumChannels);
        break;
    case 1:
        calls_begin(c, "cuArray3DGetDescriptor(%s", name);
        if (calls_result(c, cuArray3DGetDescriptor(&d, handle_of(o))))
            calls_append(c, " " SHAPE, SHAPE_OF(d));
        break;
    case 2:
        calls_begin(c, "cuArrayGetPlane(%s, 1", name);
        calls_result(c, cuArrayGetPlane(&plane, handle_of(o), 1));
        break;
    case 3:
        calls_begin(c, "cuArrayGetSparseProperties(%s", name);
        if (calls_result(c, cuArrayGetSparseProperties(&sparse, handle_of(o))))
            calls_append(c, " tile %u x %u x %u", sparse.tileExtent.width, sparse.tileExtent.height, sparse.tileExtent.depth);
        break;
    default:
        calls_begin(c, "cuArrayGetMemoryRequirements(%s", name);
        calls_result(c, cuArrayGetMemoryRequirements(&needs, handle_of(o), 0));
    }
    calls_line(c);
}

/* ---- copies of one row ---- */
void calls_copy_array_row(struct calls *c)
{
    char name[16], other_name[16];
    const struct calls_object *array = some_array(c, name), *other = some_array(c, other_name);
    const struct calls_place h = calls_host_place(c, CALLS_HEAP), d = calls_place(c, CALLS_BY_DEVICE, CALLS_EDGES);
    const size_t offset = CALLS_PICK(c, 0, 0, 0, 4, 3, 64, 100000), n = CALLS_PICK(c, 0, 1, 4, 16, 64, 1000);
    const CUarray a = handle_of(array);
    const bool unknown = (array && !array->plain) || (other && !other->plain);
    CUresult r;

    if (unknown)
        return;
    switch (calls_number(c, 5)) {
    case 0:
        calls_begin(c, "cuMemcpyHtoA(%s, %zu, %s, %zu", name, offset, h.text, n);
        r = cuMemcpyHtoA(a, offset, (void *)(uintptr_t)h.at, n);
        break;
    case 1:
        calls_begin(c, "cuMemcpyAtoH(%s, %s, %zu, %zu", h.text, name, offset, n);
        if (calls_result(c, r = cuMemcpyAtoH((void *)(uintptr_t)h.at, a, offset, n)))
            calls_append_host_contents(c, (void *)(uintptr_t)h.at, n);
        calls_line(c);
        return;
    case 2:
        calls_begin(c, "cuMemcpyDtoA(%s, %zu, %s, %zu", name, offset, d.text, n);
        r = cuMemcpyDtoA(a, offset, d.at, n);
        break;
    case 3:
        calls_begin(c, "cuMemcpyAtoD(%s, %s, %zu, %zu", d.text, name, offset, n);
        if (calls_result(c, r = cuMemcpyAtoD(d.at, a, offset, n)))
            calls_append_contents(c, d.at, n);
        calls_line(c);
        return;
    default:
        calls_begin(c, "cuMemcpyAtoA(%s, %zu, %s, %zu, %zu", name, offset, other_name, offset / 2, n);
        r = cuMemcpyAtoA(a, offset, handle_of(other), offset / 2, n);
    }
    if (calls_result(c, r) && array)
        calls_append_array_contents(c, array);
    calls_line(c);
}

/* ---- boxes ---- */
struct side {
    CUmemorytype type;
    uint64_t at;
    const struct calls_object *array;
    size_t x, y, z, pitch, height;
    char text[140];
};

static const char *const type_names[] = {"no", "host", "device", "array", "any"};

/* Host memory has room for everything that these sides can address. */
static struct side some_side(struct calls *c, size_t width, bool flat, enum calls_area area)
{
    struct side s = {.type = (CUmemorytype)(calls_chance(c, 97) ? calls_number(c, 4) + 1 : CALLS_PICK(c, 0, 5))};
    struct calls_place p = calls_host_place(c, area);
    char name[16] = "";

    if (s.type == CU_MEMORYTYPE_ARRAY && !(s.array = some_array(c, name)))
        s.type = CU_MEMORYTYPE_HOST;
    if (s.type == CU_MEMORYTYPE_DEVICE || (s.type == CU_MEMORYTYPE_UNIFIED && calls_chance(c, 60)))
        p = calls_place(c, CALLS_BY_DEVICE, s.type == CU_MEMORYTYPE_DEVICE && calls_chance(c, 25) ? CALLS_ANYTHING : CALLS_SAFE);
    if (s.type == CU_MEMORYTYPE_UNIFIED && p.object && p.room < 128 * CALLS_KIB)
        p = calls_host_place(c, area);
    s.at = p.at;
    s.x = CALLS_PICK(c, 0, 0, 0, 4, 16, 3), s.y = CALLS_PICK(c, 0, 0, 0, 1, 4), s.z = flat ? 0 : CALLS_PICK(c, 0, 0, 0, 1, 2);
    s.pitch = CALLS_PICK(c, 0, width, width + s.x, width + s.x, 512, 512, 400, width / 2);
    s.height = flat ? 0 : CALLS_PICK(c, 0, 8, 16, 16, 2);
    snprintf(s.text, sizeof s.text, "%s %s at %zu,%zu,%zu pitch %zu height %zu", s.type < 5 ? type_names[s.type] : "bad",
             s.type == CU_MEMORYTYPE_ARRAY ? name : p.text, s.x, s.y, s.z, s.pitch, s.height);
    return s;
}

static bool unknown_side(const struct side *s)
{
    return s->array && !s->array->plain;
}

/* Appends the current contents of the target, as far as its kind makes them visible. */
static void say_target(struct calls *c, const struct side *to, size_t width, size_t rows, size_t slices, size_t height)
{
    const size_t pitch = to->pitch ? to->pitch : width;
    const size_t last = (((to->z + slices - 1) * height) + to->y + rows - 1) * pitch + to->x + width;

    if (!width || !rows || !slices)
        return;
    if (to->type == CU_MEMORYTYPE_ARRAY)
        calls_append_array_contents(c, to->array);
    else if (to->type == CU_MEMORYTYPE_HOST)
        calls_append_host_contents(c, (void *)(uintptr_t)to->at, last);
    else
        calls_append_contents(c, to->at, last);
}

/* The members that the descriptors of all copies and those of boxes share. */
#define SIDES(from, to)                                                                                                                    \
    .srcXInBytes = (from).x, .srcY = (from).y, .srcMemoryType = (from).type, .srcHost = (void *)(uintptr_t)(from).at,                      \
    .srcDevice = (from).at, .srcArray = handle_of((from).array), .srcPitch = (from).pitch, .dstXInBytes = (to).x, .dstY = (to).y,          \
    .dstMemoryType = (to).type, .dstHost = (void *)(uintptr_t)(to).at, .dstDevice = (to).at, .dstArray = handle_of((to).array),            \
    .dstPitch = (to).pitch
#define DEEP_SIDES(from, to) SIDES(from, to), .srcZ = (from).z, .srcHeight = (from).height, .dstZ = (to).z, .dstHeight = (to).height

void calls_copy_rows(struct calls *c)
{
    const size_t width = CALLS_PICK(c, 0, 1, 3, 16, 64, 64, 100, 256), height = CALLS_PICK(c, 0, 1, 2, 5, 16);
    const struct side from = some_side(c, width, true, CALLS_HEAP), to = some_side(c, width, true, CALLS_WINDOW);
    const unsigned how = (unsigned)calls_number(c, 3);
    const CUstream stream = calls_stream(c);
    const CUDA_MEMCPY2D m = {SIDES(from, to), .WidthInBytes = width, .Height = height};
    CUresult r;

    if (unknown_side(&from) || unknown_side(&to))
        return;
    calls_begin(c, "cuMemcpy2D%s(to %s, from %s, %zu x %zu%s%s",
                how == 0   ? ""
                : how == 1 ? "Unaligned"
                           : "Async",
                to.text, from.text, width, height, how == 2 ? ", " : "", how == 2 ? calls_stream_name(c, stream) : "");
    r = how == 0 ? cuMemcpy2D(&m) : how == 1 ? cuMemcpy2DUnaligned(&m) : cuMemcpy2DAsync(&m, stream);
    if (calls_result(c, r)) {
        calls_wait(c, how == 2 ? stream : NULL);
        say_target(c, &to, width, height, 1, 0);
    }
    calls_line(c);
}

void calls_copy_box(struct calls *c)
{
    const size_t width = CALLS_PICK(c, 0, 1, 3, 16, 64, 64, 100, 256), height = CALLS_PICK(c, 0, 1, 2, 5, 16),
                 depth = CALLS_PICK(c, 0, 1, 1, 2, 3);
    const struct side from = some_side(c, width, false, CALLS_HEAP), to = some_side(c, width, false, CALLS_WINDOW);
    const unsigned how = (unsigned)calls_number(c, 4), lod = calls_chance(c, 4) ? 1 : 0;
    const CUstream stream = calls_stream(c);
    const CUDA_MEMCPY3D m = {DEEP_SIDES(from, to), .srcLOD = lod, .dstLOD = lod, .WidthInBytes = width, .Height = height, .Depth = depth};
    const CUDA_MEMCPY3D_PEER peer = {
        DEEP_SIDES(from, to), .srcContext = c->contexts[0], .dstContext = c->contexts[0], .WidthInBytes = width, .Height = height,
        .Depth = depth};
    CUresult r;

    if (unknown_side(&from) || unknown_side(&to))
        return;
    calls_begin(c, "cuMemcpy3D%s%s(to %s, from %s, %zu x %zu x %zu%s%s%s", how & 2 ? "Peer" : "", how & 1 ? "Async" : "", to.text,
                from.text, width, height, depth, lod ? ", level 1" : "", how & 1 ? ", " : "", how & 1 ? calls_stream_name(c, stream) : "");
    if (how & 2)
        r = how & 1 ? cuMemcpy3DPeerAsync(&peer, stream) : cuMemcpy3DPeer(&peer);
    else
        r = how & 1 ? cuMemcpy3DAsync(&m, stream) : cuMemcpy3D(&m);
    if (calls_result(c, r)) {
        calls_wait(c, how & 1 ? stream : NULL);
        say_target(c, &to, width, height, depth, to.height);
    }
    calls_line(c);
}
