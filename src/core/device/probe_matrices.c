/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan keeps secret which lane of a subgroup holds which element of a cooperative matrix. A kernel loads matrices whose elements are the
 * numbers of their rows, and of their columns, and each lane stores what it holds. The answer is in the disk cache. */
#include "probe.h"

#include "probe_job.h"
#include "core/base/config.h"
#include "core/base/disk_cache.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "probe"

enum { LANES = 32, LANE_BITS = 5, PROBE_VERSION = 1 };

static const char kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe(.param .u64 memory)\n{\n  ret;\n}\n";

struct shape {
    unsigned rows, columns, element, bits;
};

static struct shape shape_of(const struct ptx2spv_matrix *matrix, unsigned use)
{
    struct shape shape = {.rows = use == PTX2SPV_MATRIX_B ? matrix->k : matrix->m,
                          .columns = use == PTX2SPV_MATRIX_A ? matrix->k : matrix->n,
                          .element = use == PTX2SPV_MATRIX_C ? matrix->sum : matrix->factor};

    shape.bits = ptx2spv_matrix_element_bits(shape.element);
    return shape;
}

/* ---- elements, which are integers below 64 ---- */

/* The bits of a float with `fraction` bits of fraction. */
static uint32_t float_bits(unsigned value, unsigned fraction, unsigned bias)
{
    unsigned exponent = 0;

    if (!value)
        return 0;
    while (value >> exponent > 1)
        exponent++;
    return (exponent + bias) << fraction | (value - (1u << exponent)) << (fraction - exponent);
}

static uint32_t bits_of(unsigned element, unsigned value)
{
    switch (element) {
    case PTX2SPV_MATRIX_F16:
        return float_bits(value, 10, 15);
    case PTX2SPV_MATRIX_BF16:
        return float_bits(value, 7, 127);
    case PTX2SPV_MATRIX_F32:
        return float_bits(value, 23, 127);
    default:
        return value;
    }
}

/* False: the bits are none of such a number. */
static bool value_of(unsigned element, uint32_t bits, unsigned *out)
{
    for (*out = 0; *out < 64; ++*out)
        if (bits_of(element, *out) == bits)
            return true;
    return false;
}

static void write_inputs(const struct ptx2spv_target *target, struct ptx2spv_matrix_probe *probe)
{
    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && target->matrices[i].m; i++)
        for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
            const struct shape shape = shape_of(&target->matrices[i], use);

            for (unsigned e = 0; e < shape.rows * shape.columns; e++) {
                const uint32_t row = bits_of(shape.element, e / shape.columns), column = bits_of(shape.element, e % shape.columns);

                memcpy(&probe->uses[i][use].inputs[0][e * shape.bits / 8], &row, shape.bits / 8);
                memcpy(&probe->uses[i][use].inputs[1][e * shape.bits / 8], &column, shape.bits / 8);
            }
        }
}

/* ---- layouts ---- */

/* What the lanes hold. */
struct held {
    unsigned coordinates[2][LANES][PTX2SPV_MATRIX_WORDS * 4]; /* row and column, by lane and component */
    unsigned components;
};

static bool read_held(const struct ptx2spv_matrix_probe *probe, unsigned matrix, unsigned use, const struct shape *shape, struct held *out)
{
    for (unsigned i = 0; i < 2; i++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned c = 0; c < out->components; c++) {
                const uint32_t word = probe->uses[matrix][use].words[i][c * shape->bits / 32][lane];
                const uint32_t bits = shape->bits == 32 ? word : word >> c * shape->bits % 32 & ((1u << shape->bits) - 1);

                if (!value_of(shape->element, bits, &out->coordinates[i][lane][c]))
                    return false;
            }
    return true;
}

/* Bit `bit` of coordinate `which` is that of the first lane or component that has only this bit. */
static char find_bit(const struct held *held, unsigned which, unsigned bit)
{
    for (unsigned i = 0; i < LANE_BITS; i++)
        if (held->coordinates[which][1u << i][0] == 1u << bit && !held->coordinates[!which][1u << i][0])
            return (char)('0' + i);
    for (unsigned i = 0; 1u << i < held->components; i++)
        if (held->coordinates[which][0][1u << i] == 1u << bit && !held->coordinates[!which][0][1u << i])
            return (char)('a' + i);
    return 0;
}

static unsigned coordinate_of(const char *bits, unsigned lane, unsigned component)
{
    unsigned value = 0;

    for (unsigned i = 0; bits[i]; i++)
        value |= (bits[i] < 'a' ? lane >> (bits[i] - '0') & 1 : component >> (bits[i] - 'a') & 1) << i;
    return value;
}

static bool is_true(const struct held *held, const struct ptx2spv_matrix_layout *layout)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned c = 0; c < held->components; c++)
            if (coordinate_of(layout->row, lane, c) != held->coordinates[0][lane][c] ||
                coordinate_of(layout->column, lane, c) != held->coordinates[1][lane][c])
                return false;
    return true;
}

/* False: the bits of the coordinates are not just bits of lanes and components. */
static bool find_layout(const struct held *held, const struct shape *shape, struct ptx2spv_matrix_layout *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; 1u << i < shape->rows; i++)
        if (!(out->row[i] = find_bit(held, 0, i)))
            return false;
    for (unsigned i = 0; 1u << i < shape->columns; i++)
        if (!(out->column[i] = find_bit(held, 1, i)))
            return false;
    return is_true(held, out);
}

static bool find_layouts(const struct ptx2spv_matrix_probe *probe, unsigned index, struct ptx2spv_matrix *matrix, struct held *held)
{
    for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
        const struct shape shape = shape_of(matrix, use);

        held->components = matrix->components[use];
        if (!read_held(probe, index, use, &shape, held) || !find_layout(held, &shape, &matrix->layouts[use]))
            return false;
        ct_log(CT_LOG_DEBUG, "matrix %ux%ux%u, types %u and %u, %c: row %s, column %s", matrix->m, matrix->n, matrix->k, matrix->factor,
               matrix->sum, "ABC"[use], matrix -> layouts[use].row, matrix->layouts[use].column);
    }
    return true;
}

/* ---- the two runs ---- */

/* Whole words, and a power of two. */
static bool are_components(unsigned n, unsigned bits)
{
    return n && n * bits / 32 && n * bits / 32 <= PTX2SPV_MATRIX_WORDS && !(n & (n - 1));
}

static bool take_components(const struct ptx2spv_matrix_probe *probe, unsigned index, struct ptx2spv_matrix *matrix)
{
    for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
        const uint32_t n = probe->uses[index][use].components[0];

        if (!are_components(n, shape_of(matrix, use).bits))
            return false;
        matrix->components[use] = (uint8_t)n;
    }
    return true;
}

/* Removes the matrices of which `is_kept` is false. */
static void compact(struct ptx2spv_target *target, const bool *is_kept)
{
    unsigned n = 0;

    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX; i++)
        if (is_kept[i])
            target->matrices[n++] = target->matrices[i];
    memset(target->matrices + n, 0, (PTX2SPV_MATRICES_MAX - n) * sizeof *target->matrices);
}

static CUresult run(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                    struct ptx2spv_matrix_probe *probe)
{
    const struct ct_probe_job job = {.text = kernel,
                                     .blocks = 1,
                                     .threads = LANES,
                                     .input = probe,
                                     .output = probe,
                                     .size_bytes = sizeof *probe,
                                     .probe_matrices = true};

    return ct_probe_execute(backend, opened, target, &job);
}

static CUresult find_out(const struct ct_backend *backend, struct ct_backend_device *opened, struct ptx2spv_target *target,
                         struct ptx2spv_matrix_probe *probe, struct held *held)
{
    bool is_kept[PTX2SPV_MATRICES_MAX] = {0};
    CUresult r = run(backend, opened, target, probe);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && target->matrices[i].m; i++)
        is_kept[i] = take_components(probe, i, &target->matrices[i]);
    compact(target, is_kept);
    write_inputs(target, probe);
    if ((r = run(backend, opened, target, probe)) != CUDA_SUCCESS)
        return r;
    memset(is_kept, 0, sizeof is_kept);
    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && target->matrices[i].m; i++)
        is_kept[i] = find_layouts(probe, i, &target->matrices[i], held);
    compact(target, is_kept);
    return CUDA_SUCCESS;
}

/* ---- the cache ---- */

static struct ct_disk_key key_of(const struct ct_device_info *info)
{
    const uint32_t versions[] = {PROBE_VERSION, PTX2SPV_VERSION, info->vendor_id, info->device_id, info->target.workarounds};
    const struct ct_bytes parts[] = {{versions, sizeof versions},
                                     {info->uuid, sizeof info->uuid},
                                     {info->name, strlen(info->name)},
                                     {info->driver, strlen(info->driver)},
                                     {info->target.matrices, sizeof info->target.matrices}};

    return ct_disk_key_make(CT_DISK_MATRICES, parts, sizeof parts / sizeof *parts);
}

/* Every string ends, and consists of bits. */
static bool is_layout(const char *bits, unsigned size)
{
    unsigned n = 0;

    while (n < size && ((bits[n] >= '0' && bits[n] < '0' + LANE_BITS) || (bits[n] >= 'a' && bits[n] < 'a' + 7)))
        n++;
    return n < size && !bits[n];
}

static bool are_valid(const struct ptx2spv_matrix *matrices)
{
    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && matrices[i].m; i++)
        for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++)
            if (!are_components(matrices[i].components[use], shape_of(&matrices[i], use).bits) ||
                !is_layout(matrices[i].layouts[use].row, sizeof matrices[i].layouts[use].row) ||
                !is_layout(matrices[i].layouts[use].column, sizeof matrices[i].layouts[use].column))
                return false;
    return true;
}

static bool load(const struct ct_disk_key *key, struct ptx2spv_target *target)
{
    size_t size = 0;
    void *data = NULL;
    const bool is_found = ct_disk_cache_load(key, &data, &size) && size == sizeof target->matrices && are_valid(data);

    if (is_found)
        memcpy(target->matrices, data, sizeof target->matrices);
    free(data);
    return is_found;
}

/* What cannot be found out is not used. */
void ct_probe_matrices(const struct ct_backend *backend, struct ct_backend_device *opened, struct ct_device_info *info)
{
    const struct ct_disk_key key = key_of(info);
    struct ptx2spv_target found = info->target;
    struct ptx2spv_matrix_probe *probe;
    struct held *held;

    if (!info->target.matrices[0].m)
        return;
    memset(info->target.matrices, 0, sizeof info->target.matrices);
    if (found.warp_form != PTX2SPV_WARP_NATIVE || !ct_config()->probe)
        return;
    probe = calloc(1, sizeof *probe);
    held = malloc(sizeof *held);
    if (load(&key, &found)) {
        memcpy(info->target.matrices, found.matrices, sizeof found.matrices);
    } else if (probe && held && find_out(backend, opened, &found, probe, held) == CUDA_SUCCESS) {
        memcpy(info->target.matrices, found.matrices, sizeof found.matrices);
        ct_disk_cache_store(&key, &(struct ct_bytes){found.matrices, sizeof found.matrices}, 1);
    } else {
        ct_log(CT_LOG_INFO, "it could not be found out how %s holds matrices; its matrix units are not used", info->name);
    }
    free(held);
    free(probe);
}
