/* SPDX-License-Identifier: Apache-2.0 */
/* The replies of the Linux drivers for Intel's GPUs about subslices. They are constructed as include/uapi/drm/i915_drm.h and xe_drm.h
 * describe them, for chips whose numbers Intel publishes; and every truncated reply gives 0 without a read beyond its end (which
 * AddressSanitizer would detect). */
#include "backend_vk/drivers/intel_topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct reply {
    unsigned char bytes[512];
    size_t size;
};

static void put(struct reply *reply, const void *data, size_t size)
{
    memcpy(reply->bytes + reply->size, data, size);
    reply->size += size;
}

static void put16(struct reply *reply, uint16_t value)
{
    put(reply, &value, sizeof value);
}

/* ---- i915 ---- */

struct chip {
    const char *name;
    unsigned slices, subslices, eus; /* bytes for each slice and each subslice: as many as the masks need */
    uint32_t slice_mask, subslice_mask[4];
    unsigned want;
};

static const struct chip chips[] = {
    {"Skylake GT2", 3, 4, 8, 0x1, {0x7}, 3},
    {"Skylake GT4e", 3, 4, 8, 0x7, {0x7, 0x7, 0x7}, 9},
    {"Tiger Lake GT2: six dual subslices of 16", 1, 6, 16, 0x1, {0x3f}, 6},
    {"Ice Lake with subslices fused off", 1, 8, 8, 0x1, {0xbb}, 6},
    {"Arc A770: masks of 32 dual subslices", 1, 32, 16, 0x1, {0xffffffff}, 32},
    {"a slice that is off, whose mask is there", 2, 4, 8, 0x2, {0xf, 0x3}, 2},
};

static void make_i915(const struct chip *chip, struct reply *out)
{
    const uint16_t slice_bytes = (uint16_t)((chip->slices + 7) / 8), stride = (uint16_t)((chip->subslices + 7) / 8),
                   eu_stride = (uint16_t)((chip->eus + 7) / 8);
    const unsigned char eus[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    out->size = 0;
    put16(out, 0);
    put16(out, (uint16_t)chip->slices);
    put16(out, (uint16_t)chip->subslices);
    put16(out, (uint16_t)chip->eus);
    put16(out, slice_bytes);
    put16(out, stride);
    put16(out, (uint16_t)(slice_bytes + chip->slices * stride));
    put16(out, eu_stride);
    put(out, &chip->slice_mask, slice_bytes);
    for (unsigned i = 0; i < chip->slices; i++)
        put(out, &chip->subslice_mask[i], stride);
    for (unsigned i = 0; i < chip->slices * chip->subslices; i++)
        put(out, eus, eu_stride);
}

/* The reply, allocated with exactly its size. */
static unsigned count(unsigned (*subslices)(const void *, size_t), const struct reply *reply, size_t size)
{
    void *exact = malloc(size ? size : 1);
    unsigned n;

    assert_non_null(exact);
    memcpy(exact, reply->bytes, size);
    n = subslices(exact, size);
    free(exact);
    return n;
}

static void test_i915(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        struct reply reply;
        size_t masks;

        make_i915(&chips[i], &reply);
        if (count(ct_vk_i915_subslices, &reply, reply.size) != chips[i].want)
            fail_msg("%s: %u", chips[i].name, count(ct_vk_i915_subslices, &reply, reply.size));
        masks = 16 + (chips[i].slices + 7) / 8 + chips[i].slices * ((chips[i].subslices + 7) / 8);
        for (size_t cut = 0; cut < masks; cut++)
            assert_int_equal(count(ct_vk_i915_subslices, &reply, cut), 0);
    }
}

static void test_i915_that_contradicts_itself(void **state)
{
    struct reply reply;
    uint16_t stride = 0;

    (void)state;
    make_i915(&chips[4], &reply);
    memcpy(reply.bytes + 10, &stride, sizeof stride); /* too narrow for the subslices */
    assert_int_equal(count(ct_vk_i915_subslices, &reply, reply.size), 0);
    stride = 0xffff;
    memcpy(reply.bytes + 10, &stride, sizeof stride);
    assert_int_equal(count(ct_vk_i915_subslices, &reply, reply.size), 0);
}

/* ---- xe ---- */

enum { GEOMETRY = 1, COMPUTE = 2, L3_BANK = 3, EU_PER_DSS = 4, SIMD16_EU_PER_DSS = 5 };

static void put_mask(struct reply *reply, uint16_t gt, uint16_t type, uint64_t mask)
{
    const uint32_t bytes = sizeof mask;

    put16(reply, gt);
    put16(reply, type);
    put(reply, &bytes, sizeof bytes);
    put(reply, &mask, sizeof mask);
}

static void test_xe(void **state)
{
    struct reply reply = {.size = 0};
    size_t whole;

    (void)state;
    put_mask(&reply, 0, GEOMETRY, 0xff); /* Lunar Lake: 8 Xe cores */
    put_mask(&reply, 0, COMPUTE, 0xff);
    put_mask(&reply, 0, L3_BANK, 0xf);
    put_mask(&reply, 0, SIMD16_EU_PER_DSS, 0xff);
    put_mask(&reply, 1, GEOMETRY, 0); /* the media part */
    put_mask(&reply, 1, COMPUTE, 0);
    put_mask(&reply, 1, EU_PER_DSS, 0);
    assert_int_equal(count(ct_vk_xe_subslices, &reply, reply.size), 8);
    whole = reply.size;
    for (size_t cut = 0; cut < whole; cut++)
        if (cut % 16 != 0) /* a reply that ends with a mask is a shorter valid one */
            assert_int_equal(count(ct_vk_xe_subslices, &reply, cut), 0);
    reply.size = 0;
    put_mask(&reply, 0, GEOMETRY, 0xfffff); /* Arc B580: 20 */
    put_mask(&reply, 0, COMPUTE, 0xfffff);
    assert_int_equal(count(ct_vk_xe_subslices, &reply, reply.size), 20);
    reply.size = 0;
    put_mask(&reply, 0, GEOMETRY, 0); /* Ponte Vecchio, two tiles of 64: compute only */
    put_mask(&reply, 0, COMPUTE, ~UINT64_C(0));
    put_mask(&reply, 1, GEOMETRY, 0);
    put_mask(&reply, 1, COMPUTE, ~UINT64_C(0));
    assert_int_equal(count(ct_vk_xe_subslices, &reply, reply.size), 128);
    assert_int_equal(count(ct_vk_xe_subslices, &reply, 0), 0);
    put_mask(&reply, 999, COMPUTE, 1); /* no such part */
    assert_int_equal(count(ct_vk_xe_subslices, &reply, reply.size), 0);
}

static void test_nodes_that_are_none(void **state)
{
    (void)state;
    assert_int_equal(ct_vk_intel_subslices(226, 9999), 0);
    assert_int_equal(ct_vk_intel_subslices(1, 3), 0);
    assert_int_equal(ct_vk_intel_subslices(-1, -1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_i915),
        cmocka_unit_test(test_i915_that_contradicts_itself),
        cmocka_unit_test(test_xe),
        cmocka_unit_test(test_nodes_that_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
