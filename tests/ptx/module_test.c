/* SPDX-License-Identifier: Apache-2.0 */
/* Modules through the public interface: kernels and their parameter blocks, the image of variables, relocations, versions.
 * Expectations: the PTX ISA on alignment ("Alignment of Variables", kernel parameters) and initial values. */
#include "cuttle/ptx2spv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static struct ptx2spv_module *create(const char *text)
{
    struct ptx2spv_module *module = NULL;

    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    assert_non_null(module);
    return module;
}

static const struct ptx2spv_variable *variable(const struct ptx2spv_module *module, const char *name, unsigned *index)
{
    for (unsigned i = 0; i < ptx2spv_module_variable_count(module); i++) {
        if (strcmp(ptx2spv_module_variable(module, i)->name, name) == 0) {
            if (index)
                *index = i;
            return ptx2spv_module_variable(module, i);
        }
    }
    fail_msg("no variable %s", name);
    return NULL;
}

static const uint8_t zeros[64];

static uint8_t byte_at(const struct ptx2spv_image *image, uint64_t offset)
{
    const struct ptx2spv_piece *piece = ptx2spv_image_piece(image, offset);

    return piece ? ((const uint8_t *)piece->bytes)[offset - piece->offset] : 0;
}

/* The initial bytes of a variable, or zeros if it has none of its own. */
static const uint8_t *bytes_of(const struct ptx2spv_module *module, const char *name)
{
    const struct ptx2spv_image *image = ptx2spv_module_image(module);
    const struct ptx2spv_variable *v = variable(module, name, NULL);
    const struct ptx2spv_piece *piece = ptx2spv_image_piece(image, v->offset);

    assert_true(v->offset + v->size <= image->size_bytes);
    assert_int_equal(v->offset % v->align, 0);
    assert_int_equal(image->align % v->align, 0);
    if (!piece)
        return zeros;
    assert_true(v->offset + v->size <= piece->offset + piece->size_bytes);
    return (const uint8_t *)piece->bytes + (v->offset - piece->offset);
}

static void versions(void **state)
{
    struct ptx2spv_module *module = create(".version 7.4\n.target sm_86\n");
    unsigned isa, sm, address_bits;

    (void)state;
    ptx2spv_module_versions(module, &isa, &sm, &address_bits);
    assert_int_equal(isa, 74);
    assert_int_equal(sm, 86);
    assert_int_equal(address_bits, 64);
    ptx2spv_module_destroy(module);
}

static void nul_ends_the_text(void **state)
{
    static const char text[] = HEAD ".entry k { ret; }\n\0.this is not read";
    struct ptx2spv_module *module = NULL;

    (void)state;
    assert_int_equal(ptx2spv_module_create(text, sizeof text - 1, NULL, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_module_kernel_count(module), 1);
    ptx2spv_module_destroy(module);
    ptx2spv_module_destroy(NULL);
}

static void kernels_and_parameters(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".func helper() { ret; }\n.extern .entry elsewhere(.param .u32 a);\n.visible .entry none { ret; }\n"
                    ".visible .entry many(.param .u8 a, .param .u32 b, .param .u16 c, .param .f64 d, .param .align 16 .b8 e[20], "
                    ".param .u8 f, .param .v4 .f32 g) .maxntid 128, 2 .minnctapersm 4 { ret; }\n");
    static const struct ptx2spv_param want[] = {{0, 1, 1}, {4, 4, 4}, {8, 2, 2}, {16, 8, 8}, {32, 20, 16}, {52, 1, 1}, {64, 16, 16}};
    const struct ptx2spv_kernel_decl *many = ptx2spv_module_kernel(module, 1);

    (void)state;
    assert_int_equal(ptx2spv_module_kernel_count(module), 2); /* neither functions nor declarations */
    assert_string_equal(ptx2spv_module_kernel(module, 0)->name, "none");
    assert_int_equal(ptx2spv_module_kernel(module, 0)->param_bytes, 0);
    assert_string_equal(many->name, "many");
    assert_int_equal(many->n_params, 7);
    assert_memory_equal(many->params, want, sizeof want);
    assert_int_equal(many->param_bytes, 80);
    assert_int_equal(many->max_ntid[0], 128);
    assert_int_equal(many->max_ntid[1], 2);
    assert_int_equal(many->max_ntid[2], 1);
    assert_int_equal(many->req_ntid[0], 0);
    assert_int_equal(many->min_nctapersm, 4);
    assert_null(ptx2spv_module_kernel(module, 2));
    assert_null(ptx2spv_module_variable(module, 0));
    ptx2spv_module_destroy(module);
}

static void initial_bytes(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".global .b8 a[3] = {1, 2};\n.global .u32 b = 0x12345678;\n.const .f32 c[2] = {1.0, -2.0};\n"
                    ".global .s16 d = -2;\n.global .f16 e = 1.5;\n.global .u64 f[2][2] = {{1}, {2, 3}};\n.global .b128 g = -1;\n");
    static const uint8_t a[] = {1, 2, 0}, b[] = {0x78, 0x56, 0x34, 0x12}, d[] = {0xfe, 0xff}, e[] = {0, 0x3e};
    static const float c[] = {1, -2};
    static const uint64_t f[] = {1, 0, 2, 3}, g[] = {UINT64_MAX, UINT64_MAX};

    (void)state;
    assert_memory_equal(bytes_of(module, "a"), a, sizeof a);
    assert_memory_equal(bytes_of(module, "b"), b, sizeof b);
    assert_memory_equal(bytes_of(module, "c"), c, sizeof c);
    assert_memory_equal(bytes_of(module, "d"), d, sizeof d);
    assert_memory_equal(bytes_of(module, "e"), e, sizeof e);
    assert_memory_equal(bytes_of(module, "f"), f, sizeof f);
    assert_memory_equal(bytes_of(module, "g"), g, sizeof g);
    assert_int_equal(variable(module, "c", NULL)->space, PTX2SPV_VAR_CONST);
    ptx2spv_module_destroy(module);
}

static void which_variables_have_a_place(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".visible .global .attribute(.managed) .u32 m = 4;\n.extern .global .u32 x;\n.shared .u32 s;\n.global .u32 p;\n"
                    ".entry k { .global .u32 inside = 7; .local .u32 l; .shared .u32 t; ret; }\n");
    static const uint8_t seven[] = {7, 0, 0, 0};

    (void)state;
    assert_int_equal(ptx2spv_module_variable_count(module), 4);
    assert_true(variable(module, "m", NULL)->managed);
    assert_true(variable(module, "m", NULL)->visible);
    assert_false(variable(module, "p", NULL)->visible);
    assert_true(variable(module, "x", NULL)->external);
    assert_false(variable(module, "p", NULL)->external);
    assert_memory_equal(bytes_of(module, "inside"), seven, sizeof seven);
    ptx2spv_module_destroy(module);
}

/* Managed variables have an image of their own; the module's image starts with space for its address. */
static void managed_variables_lie_apart(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".global .u32 p = 3;\n.global .attribute(.managed) .u32 m = 4;\n.global .align 32 .attribute(.managed) .u64 q = p;\n"
                    ".global .u64 r = m;\n");
    const struct ptx2spv_variable *m = variable(module, "m", NULL), *q = variable(module, "q", NULL);
    const struct ptx2spv_relocation *found;
    const struct ptx2spv_image *image = ptx2spv_module_managed_image(module);
    unsigned count, index_m, index_p;

    (void)state;
    variable(module, "m", &index_m);
    variable(module, "p", &index_p);
    assert_int_equal(m->offset, 0);
    assert_int_equal(q->offset, 32);
    assert_int_equal(image->size_bytes, 40);
    assert_int_equal(image->align, 32);
    assert_int_equal(byte_at(image, 0), 4);
    assert_int_equal(variable(module, "p", NULL)->offset, 8);
    assert_int_equal(*bytes_of(module, "p"), 3);
    found = ptx2spv_module_relocations(module, &count);
    assert_int_equal(count, 2);
    assert_true(found[0].in_managed && found[0].offset == 32 && found[0].variable == index_p);
    assert_true(!found[1].in_managed && found[1].offset == variable(module, "r", NULL)->offset && found[1].variable == index_m);
    ptx2spv_module_destroy(module);
    module = create(HEAD ".global .u32 p = 3;\n");
    assert_int_equal(variable(module, "p", NULL)->offset, 0);
    assert_int_equal(ptx2spv_module_managed_image(module)->size_bytes, 0);
    ptx2spv_module_destroy(module);
}

static void variables_do_not_overlap(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".global .u8 a;\n.global .align 256 .u8 b[3];\n.const .u64 c;\n.global .u8 d[5];\n.global .v2 .u64 e;\n");

    (void)state;
    for (unsigned i = 0; i < ptx2spv_module_variable_count(module); i++) {
        const struct ptx2spv_variable *v = ptx2spv_module_variable(module, i);

        assert_int_equal(v->offset % v->align, 0);
        for (unsigned k = 0; k < i; k++) {
            const struct ptx2spv_variable *other = ptx2spv_module_variable(module, k);

            assert_true(v->offset >= other->offset + other->size || other->offset >= v->offset + v->size);
        }
    }
    ptx2spv_module_destroy(module);
}

static void relocations(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".global .u32 a[8];\n.global .u64 p[3] = {a, 5, generic(a) + 12};\n.global .u64 self = self;\n"
                    ".global .u8 packed[9] = {7, 0xFF(a), 0xFF00(a), 0xFF0000(a), 0xFF000000(a), 0xFF00000000(a), 0xFF0000000000(a), "
                    "0xFF000000000000(a), 0xFF00000000000000(a)};\n");
    unsigned a, self, n;
    const struct ptx2spv_variable *p = variable(module, "p", NULL), *packed = variable(module, "packed", NULL);
    const struct ptx2spv_relocation *r = ptx2spv_module_relocations(module, &n);

    (void)state;
    variable(module, "a", &a);
    variable(module, "self", &self);
    assert_int_equal(n, 4);
    assert_int_equal(r[0].offset, p->offset);
    assert_int_equal(r[0].variable, a);
    assert_int_equal(r[0].addend, 0);
    assert_int_equal(r[0].width, 8);
    assert_int_equal(r[1].offset, p->offset + 16);
    assert_int_equal(r[1].addend, 12);
    assert_int_equal(r[2].variable, self);
    assert_int_equal(r[3].offset, packed->offset + 1); /* eight parts form one address */
    assert_int_equal(r[3].width, 8);
    assert_int_equal(bytes_of(module, "packed")[0], 7);
    assert_int_equal(bytes_of(module, "p")[8], 5);
    ptx2spv_module_destroy(module);
}

/* A function's address is the same wherever it is stored, in a whole word or byte by byte; different functions have different addresses;
 * none is null. */
static void addresses_of_functions(void **state)
{
    struct ptx2spv_module *module =
        create(HEAD ".func f() { ret; }\n.func unused() { ret; }\n.func g() { ret; }\n"
                    ".global .align 8 .u64 table[4] = {g, 0, f, generic(g)};\n"
                    ".const .align 1 .b8 pieces[9] = {7, 0xFF(f), 0xFF00(f), 0xFF0000(f), 0xFF000000(f), 0xFF00000000(f),"
                    " 0xFF0000000000(f), 0xFF000000000000(f), 0xFF00000000000000(f)};\n.visible .entry k { ret; }\n");
    uint64_t table[4], f;
    unsigned n_relocations;

    (void)state;
    memcpy(table, bytes_of(module, "table"), sizeof table);
    memcpy(&f, bytes_of(module, "pieces") + 1, sizeof f);
    assert_true(table[0] && table[2] && table[0] != table[2]);
    assert_int_equal(table[1], 0);
    assert_int_equal(table[3], table[0]);
    assert_int_equal(f, table[2]);
    ptx2spv_module_relocations(module, &n_relocations);
    assert_int_equal(n_relocations, 0);
    ptx2spv_module_destroy(module);
}

static uint64_t bytes_of_pieces(const struct ptx2spv_image *image)
{
    uint64_t total = 0, end = 0;

    for (unsigned i = 0; i < image->n_pieces; i++) {
        assert_true(image->pieces[i].offset >= end);
        end = image->pieces[i].offset + image->pieces[i].size_bytes;
        total += image->pieces[i].size_bytes;
    }
    assert_true(end <= image->size_bytes);
    return total;
}

/* Only what is not zero has bytes: here, 8 bytes at the start of a large variable, and the variables between and behind the large ones. */
static void large_variables_cost_no_memory(void **state)
{
    struct ptx2spv_module *module = create(HEAD ".global .b8 big[1099511627776];\n.global .u32 between = 5;\n"
                                                ".global .align 8 .u64 table[8589934592] = {7, 0, big};\n.global .u32 behind = 6;\n");
    const struct ptx2spv_image *image = ptx2spv_module_image(module);
    const struct ptx2spv_variable *table = variable(module, "table", NULL);
    const struct ptx2spv_relocation *found;
    unsigned count;

    (void)state;
    assert_int_equal(image->size_bytes, UINT64_C(1099511627776) + 8 + UINT64_C(8589934592) * 8 + 4);
    assert_in_range(bytes_of_pieces(image), 4 + 24 + 4, 1 << 18);
    assert_null(ptx2spv_image_piece(image, variable(module, "big", NULL)->size / 2));
    assert_null(ptx2spv_image_piece(image, table->offset + table->size / 2));
    assert_int_equal(bytes_of(module, "between")[0], 5);
    assert_int_equal(bytes_of(module, "behind")[0], 6);
    assert_int_equal(byte_at(image, table->offset), 7);
    found = ptx2spv_module_relocations(module, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->offset, table->offset + 16);
    assert_non_null(ptx2spv_image_piece(image, found->offset + found->width - 1));
    ptx2spv_module_destroy(module);
}

static void unsupported_code_does_not_fail_the_module(void **state)
{
    struct ptx2spv_module *module = create(HEAD ".entry k { .reg .b32 %r<9>; .reg .f32 %f<9>;\n"
                                                "mbarrier.init.shared.b64 [%r0], 1;\nret; }\n");

    (void)state;
    assert_int_equal(ptx2spv_module_kernel_count(module), 1);
    ptx2spv_module_destroy(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(nul_ends_the_text),
        cmocka_unit_test(kernels_and_parameters),
        cmocka_unit_test(initial_bytes),
        cmocka_unit_test(which_variables_have_a_place),
        cmocka_unit_test(managed_variables_lie_apart),
        cmocka_unit_test(variables_do_not_overlap),
        cmocka_unit_test(relocations),
        cmocka_unit_test(addresses_of_functions),
        cmocka_unit_test(large_variables_cost_no_memory),
        cmocka_unit_test(unsupported_code_does_not_fail_the_module),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
