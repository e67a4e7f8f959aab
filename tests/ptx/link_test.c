/* SPDX-License-Identifier: Apache-2.0 */
/* Linking several texts into one module. Expectations: the PTX ISA, "Linking Directives", and the messages of NVIDIA's linker on
 * conflicting names. */
#include "cuttle/ptx2spv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"

/* Names that end with .o are members of a library. */
struct text {
    const char *name, *text;
};

struct linked {
    struct ptx2spv_module *module;
    enum ptx2spv_status status;
    char log[4096];
};

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct linked *linked = user;
    const size_t used = strlen(linked->log);

    snprintf(linked->log + used, sizeof linked->log - used, "%s:%u: %s\n", diagnostic->name ? diagnostic->name : "", diagnostic->line,
             diagnostic->text);
}

static void link_texts(struct linked *out, const struct text *texts, unsigned n)
{
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = out};
    struct ptx2spv_linker *linker;

    *out = (struct linked){0};
    assert_int_equal(ptx2spv_linker_create(&linker), PTX2SPV_OK);
    for (unsigned i = 0; i < n && out->status == PTX2SPV_OK; i++) {
        const bool is_member = texts[i].name && strstr(texts[i].name, ".o");
        const struct ptx2spv_input input = {texts[i].text, strlen(texts[i].text), texts[i].name, is_member};

        out->status = ptx2spv_linker_add(linker, &input, &options);
    }
    if (out->status == PTX2SPV_OK)
        out->status = ptx2spv_linker_finish(linker, &options, &out->module);
    else
        assert_int_equal(ptx2spv_linker_finish(linker, &options, &out->module), out->status);
    ptx2spv_linker_destroy(linker);
}

#define LINK(out, ...)                                                                                                                     \
    do {                                                                                                                                   \
        const struct text texts_[] = {__VA_ARGS__};                                                                                        \
        link_texts((out), texts_, (unsigned)(sizeof texts_ / sizeof *texts_));                                                             \
    } while (0)

static void expect_linked(const struct linked *linked)
{
    if (linked->status != PTX2SPV_OK)
        fail_msg("%s", linked->log);
}

/* The only variable of that name that has storage. */
static const struct ptx2spv_variable *find(const struct linked *linked, const char *name, unsigned *count)
{
    const struct ptx2spv_variable *found = NULL;

    *count = 0;
    for (unsigned i = 0; i < ptx2spv_module_variable_count(linked->module); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(linked->module, i);

        if (strcmp(variable->name, name) || variable->external)
            continue;
        ++*count;
        found = variable;
    }
    return found;
}

static uint32_t word_at(const struct linked *linked, uint64_t offset)
{
    const struct ptx2spv_piece *piece = ptx2spv_image_piece(ptx2spv_module_image(linked->module), offset);
    uint32_t word;

    assert_non_null(piece);
    assert_true(offset + sizeof word <= piece->offset + piece->size_bytes);
    memcpy(&word, (const uint8_t *)piece->bytes + (offset - piece->offset), sizeof word);
    return word;
}

static uint32_t value_of(const struct linked *linked, const char *name)
{
    unsigned count;
    const struct ptx2spv_variable *variable = find(linked, name, &count);

    assert_int_equal(count, 1);
    return word_at(linked, variable->offset);
}

/* Compiles kernel 0 for a Vulkan device. */
static void expect_compiled(const struct linked *linked)
{
    struct ptx2spv_target target = {
        .warp_form = PTX2SPV_WARP_NATIVE,
        .subgroup_size = 32,
        .push_constant_bytes = 256,
        .shared_bytes = 49152,
        .max_block_threads = 1024,
        .int64 = 1,
        .atomic_int64_global = 1,
    };
    struct ptx2spv_kernel kernel;

    expect_linked(linked);
    assert_int_equal(ptx2spv_kernel_compile(linked->module, 0, &target, NULL, &kernel), PTX2SPV_OK);
    ptx2spv_kernel_finish(&kernel);
}

static void extern_names_find_their_definitions(void **state)
{
    struct linked linked;
    unsigned count;

    (void)state;
    LINK(&linked,
         {"a", HEAD
          ".extern .global .u32 v; .extern .const .u32 c[2]; .extern .shared .u32 s; .extern .func (.param .b32 r) f(.param .b32 "
          "x);\n" KERNEL
          ".param .b32 x, r; ld.global.u32 %r1, [v]; st.param.b32 [x], %r1; call (r), f, (x); ld.const.u32 %r2, [c+4]; st.shared.u32 [s], "
          "%r2; ret; }\n"},
         {"b",
          HEAD ".visible .global .u32 v = 7; .visible .const .u32 c[2] = {1, 2}; .visible .shared .u32 s;\n"
               ".visible .func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r1; ld.param.b32 %r1, [x]; st.param.b32 [r], %r1; ret; }\n"});
    expect_compiled(&linked);
    assert_int_equal(value_of(&linked, "v"), 7);
    assert_int_equal(find(&linked, "c", &count)->size, 8);
    assert_int_equal(ptx2spv_module_variable_count(linked.module), 2); /* the declarations are gone */
    ptx2spv_module_destroy(linked.module);
}

static void names_without_a_directive_stay_apart(void **state)
{
    struct linked linked;
    unsigned count;

    (void)state;
    LINK(&linked, {"a", HEAD ".global .u32 v = 1; .func f() { ret; }\n" KERNEL "call f; ld.global.u32 %r1, [v]; ret; }\n"},
         {"b", HEAD ".global .u32 v = 2; .func f() { ret; }\n"}, {"c", HEAD ".visible .global .u32 v = 3;"});
    expect_compiled(&linked);
    find(&linked, "v", &count);
    assert_int_equal(count, 3);
    ptx2spv_module_destroy(linked.module);
}

/* An initial value that is the address of another text's variable, and of a function. */
static void initializers_take_addresses_of_others(void **state)
{
    struct linked linked;
    const struct ptx2spv_relocation *relocations;
    const struct ptx2spv_variable *p, *v;
    unsigned count;

    (void)state;
    LINK(&linked,
         {"a", HEAD ".extern .global .u32 v[]; .extern .func f();\n.visible .global .u64 p = generic(v) + 4; .visible .global .u64 q = f;"},
         {"b", HEAD ".global .u32 before; .visible .global .u32 v[4]; .visible .func f() { ret; }"});
    expect_linked(&linked);
    p = find(&linked, "p", &count);
    v = find(&linked, "v", &count);
    relocations = ptx2spv_module_relocations(linked.module, &count);
    assert_int_equal(count, 1);
    assert_int_equal(relocations[0].offset, p->offset);
    assert_int_equal(relocations[0].addend, 4);
    assert_int_equal(relocations[0].width, 8);
    assert_ptr_equal(ptx2spv_module_variable(linked.module, relocations[0].variable), v);
    assert_true(value_of(&linked, "q") != 0);
    ptx2spv_module_destroy(linked.module);
}

static void weak_gives_way(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked, {"a", HEAD ".weak .global .u32 v = 1; .weak .global .u32 w = 10;\n.weak .func f() { ret; }\n" KERNEL "call f; ret; }"},
         {"b", HEAD ".visible .global .u32 v = 2; .weak .global .u32 w = 20; .visible .func f() { trap; }"});
    expect_compiled(&linked);
    assert_int_equal(value_of(&linked, "v"), 2);
    assert_int_equal(value_of(&linked, "w"), 10);
    ptx2spv_module_destroy(linked.module);
}

/* The same for its variables. */
static void an_alias_keeps_what_gave_way(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked,
         {"a",
          HEAD ".visible .func h();\n.weak .func g() { .global .u32 s = 5; .reg .b32 %r1; ld.global.u32 %r1, [s]; ret; }\n.alias h, g;\n"},
         {"b", HEAD ".visible .func g() { ret; }\n"}, {"c", HEAD ".extern .func h();\n" KERNEL "call h; ret; }"});
    expect_compiled(&linked);
    assert_int_equal(value_of(&linked, "s"), 5);
    ptx2spv_module_destroy(linked.module);
}

static void kernels_may_be_weak(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked, {"a", HEAD ".weak .entry k() { ret; }"}, {"b", HEAD ".weak .entry k() { ret; }\n.visible .entry l() { ret; }"});
    expect_linked(&linked);
    assert_int_equal(ptx2spv_module_kernel_count(linked.module), 2);
    ptx2spv_module_destroy(linked.module);
}

static void the_largest_common_stays(void **state)
{
    struct linked linked;
    unsigned count;

    (void)state;
    LINK(&linked, {"a", HEAD ".common .global .align 4 .u32 v; .common .global .u32 w[4] = {5, 6, 7, 8};"},
         {"b", HEAD ".common .global .align 64 .b8 v[100]; .common .global .u32 w;"},
         {"c", HEAD ".common .global .f64 v; .extern .global .u32 w[]; .common .global .u32 x;"},
         {"d", HEAD ".visible .global .u32 x = 9;"});
    expect_linked(&linked);
    assert_int_equal(find(&linked, "v", &count)->size, 100);
    assert_int_equal(count, 1);
    assert_int_equal(find(&linked, "v", &count)->align, 64);
    assert_int_equal(value_of(&linked, "w"), 5);
    assert_int_equal(value_of(&linked, "x"), 9);
    ptx2spv_module_destroy(linked.module);
}

static void dynamic_shared_arrays_need_no_definition(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked, {"a", HEAD ".extern .shared .align 16 .b8 s[];\n" KERNEL "ld.shared.u32 %r1, [s]; ret; }"},
         {"b", HEAD ".extern .shared .align 8 .f64 s[];\n.visible .func f() { .reg .f64 %d1; ld.shared.f64 %d1, [s]; ret; }"});
    expect_compiled(&linked);
    ptx2spv_module_destroy(linked.module);
}

/* Members of a library that are not needed are not linked, even if they would conflict. */
static void libraries_give_what_is_wanted(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked, {"second.o", HEAD ".visible .global .u32 v = 4; .visible .global .u32 twice;"},
         {"first.o", HEAD ".extern .global .u32 v;\n.visible .func f() { .reg .b32 %r1; ld.global.u32 %r1, [v]; ret; }"},
         {"other.o", HEAD ".visible .entry k() { ret; }\n.visible .global .u32 twice;\n.extern .func nowhere();"},
         {"a", HEAD ".extern .func f();\n" KERNEL "call f; ret; }"});
    expect_compiled(&linked);
    assert_true(ptx2spv_module_uses_input(linked.module, 0));
    assert_true(ptx2spv_module_uses_input(linked.module, 1));
    assert_false(ptx2spv_module_uses_input(linked.module, 2));
    assert_true(ptx2spv_module_uses_input(linked.module, 3));
    assert_false(ptx2spv_module_uses_input(linked.module, 4));
    ptx2spv_module_destroy(linked.module);
}

/* Functions that the device provides take precedence over a library that defines the same names and calls the system for them, as
 * libcudadevrt.a does. If such a library is linked for another reason, its calls of the system are resolved. */
static void the_device_stands_before_a_library(void **state)
{
    static const struct text library = {
        "devrt.o", HEAD
        ".extern .func (.param .b32 r) __cuda_syscall_CGS_sync(.param .b64 h, .param .b32 f);\n"
        ".extern .func (.param .b32 r) __cuda_syscall_unheard_of(.param .b64 h);\n"
        ".visible .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f)\n"
        "{ .reg .b32 %r; .reg .b64 %h; ld.param.u64 %h, [h]; ld.param.u32 %r, [f];\n"
        "call (%r), __cuda_syscall_CGS_sync, (%h, %r); st.param.b32 [r], %r; ret; }\n"
        ".visible .func (.param .b32 r) unheard_of(.param .b64 h)\n"
        "{ .reg .b32 %r; .reg .b64 %h; ld.param.u64 %h, [h]; call (%r), __cuda_syscall_unheard_of, (%h); st.param.b32 [r], %r; ret; }\n"
        ".visible .func other() { ret; }\n"};
    struct linked linked;

    (void)state;
    LINK(&linked, library,
         {"a", HEAD ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n" KERNEL
                    "call (%r1), cudaCGSynchronize, (0, 0); ret; }"});
    expect_compiled(&linked);
    assert_false(ptx2spv_module_uses_input(linked.module, 0));
    ptx2spv_module_destroy(linked.module);
    LINK(&linked, library,
         {"a", HEAD ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f); .extern .func other();\n" KERNEL
                    "call other; call (%r1), cudaCGSynchronize, (0, 0); ret; }"});
    expect_compiled(&linked);
    assert_true(ptx2spv_module_uses_input(linked.module, 0));
    ptx2spv_module_destroy(linked.module);
}

/* ptxas 13.0 accepts them all: no result, one of another size, too few and too many parameters, and parameters of other sizes. */
static void system_functions_have_any_prototype(void **state)
{
    static const struct {
        const char *prototype, *call;
    } rows[] = {
        {"vprintf(.param .b64 a, .param .b64 b)", "call vprintf, (a, b);"},
        {"(.param .b64 r) vprintf(.param .b64 a, .param .b64 b)", "call (r), vprintf, (a, b);"},
        {"(.param .align 8 .b8 r[8]) vprintf(.param .b64 a, .param .b64 b)", "call (r8), vprintf, (a, b);"},
        {"vprintf(.param .b64 a)", "call vprintf, (a);"},
        {"vprintf", "call vprintf;"},
        {"vprintf(.param .b64 a, .param .b64 b, .param .b32 c)", "call vprintf, (a, b, c);"},
        {"vprintf(.param .b32 a, .param .align 8 .b8 b[8])", "call vprintf, (c, r8);"},
        {"(.param .b32 r) malloc(.param .b32 a)", "call (c), malloc, (c);"},
        {"malloc(.reg .b64 a)", "call malloc, (%rd1);"},
        {"(.param .b32 r) free(.param .b64 a)", "call (c), free, (a);"},
        {"(.param .b32 r) __assertfail(.param .b32 a)", "call (c), __assertfail, (c);"},
        {"cudaCGSynchronize(.param .b64 a)", "call cudaCGSynchronize, (a);"},
    };
    static const char other[] = HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);";
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct linked linked;

        snprintf(text, sizeof text, "%s.extern .func %s;\n%s%s ret; }\n", HEAD, rows[i].prototype,
                 KERNEL ".param .b64 a, b, r; .param .b32 c; .param .align 8 .b8 r8[8];\n"
                        "st.param.b64 [a], 0; st.param.b64 [b], 0; st.param.b32 [c], 0; st.param.b64 [r8], 0; ",
                 rows[i].call);
        LINK(&linked, {NULL, text});
        expect_compiled(&linked);
        ptx2spv_module_destroy(linked.module);
        LINK(&linked, {"a", text}, {"b", other}); /* nor do two texts have to agree */
        expect_compiled(&linked);
        ptx2spv_module_destroy(linked.module);
    }
}

/* ptxas: "Unresolved extern variable in whole program compilation, ignoring extern qualifier". */
static void extern_shared_arrays_with_a_size_are_there(void **state)
{
    static const char text[] = HEAD ".extern .shared .align 8 .b8 s[256];\n" KERNEL "st.shared.u32 [s+252], %r1; ret; }";
    struct linked linked;

    (void)state;
    LINK(&linked, {NULL, text});
    expect_compiled(&linked);
    assert_non_null(strstr(linked.log, "shared variable 's' is .extern and has no definition"));
    ptx2spv_module_destroy(linked.module);
    LINK(&linked, {"a", text}, {"b", HEAD ".visible .func f() { ret; }"}); /* one of several texts must define it */
    assert_int_equal(linked.status, PTX2SPV_UNDEFINED);
}

static void versions_are_the_newest(void **state)
{
    struct linked linked;
    unsigned isa, sm, address_bits;

    (void)state;
    LINK(&linked, {"a", ".version 7.0\n.target sm_90\n"}, {"b", ".version 8.1\n.target sm_60\n"});
    expect_linked(&linked);
    ptx2spv_module_versions(linked.module, &isa, &sm, &address_bits);
    assert_int_equal(isa, 81);
    assert_int_equal(sm, 90);
    ptx2spv_module_destroy(linked.module);
}

static void what_does_not_fit(void **state)
{
    static const struct {
        const char *what, *a, *b, *message;
    } rows[] = {
        {"two variables", ".visible .global .u32 v;", ".visible .global .u32 v;",
         "b:4: Multiple definition of 'v' in 'b', first defined in 'a'"},
        {"two functions", ".visible .func f() { ret; }", ".visible .func f() { ret; }",
         "Multiple definition of 'f' in 'b', first defined in 'a'"},
        {"two kernels", ".visible .entry k() { ret; }", ".visible .entry k() { ret; }", "Multiple definition of 'k'"},
        {"two commons with values", ".common .global .u32 v = 1;", ".common .global .u32 v = 1;", "Multiple definition of 'v'"},
        {"a common with a value that is not the largest", ".common .global .u32 v = 1;", ".common .global .u32 v[2];",
         "Size doesn't match for 'v'"},
        {"a size", ".extern .global .u32 v[4];", ".visible .global .u32 v[8];",
         "Size doesn't match for 'v' in 'b', first specified in 'a'"},
        {"a state space", ".extern .const .u32 v;", ".visible .global .u32 v;", "Memory space doesn't match for 'v'"},
        {"a function and a variable", ".visible .func f() { ret; }", ".visible .global .u32 f;", "Memory space doesn't match for 'f'"},
        {"a result", ".extern .func (.param .b32 r) f();", ".visible .func f() { ret; }", "Prototype doesn't match for 'f'"},
        {"a parameter", ".extern .func f(.param .b64 a);", ".visible .func f(.param .b32 a) { ret; }", "Prototype doesn't match for 'f'"},
        {"a kernel and a function", ".extern .func f();", ".visible .entry f() { ret; }", "Prototype doesn't match for 'f'"},
    };
    char a[512], b[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct linked linked;

        snprintf(a, sizeof a, HEAD "%s\n", rows[i].a);
        snprintf(b, sizeof b, HEAD "%s\n", rows[i].b);
        LINK(&linked, {"a", a}, {"b", b});
        if (linked.status != PTX2SPV_MULTIPLY_DEFINED || !strstr(linked.log, rows[i].message))
            fail_msg("%s: %s: %s", rows[i].what, ptx2spv_status_string(linked.status), linked.log);
    }
}

static void what_is_defined_nowhere(void **state)
{
    struct linked linked;

    (void)state;
    LINK(&linked, {"a", HEAD ".extern .func f();\n" KERNEL "call f;\ncall f; ret; }"}, {"b", HEAD});
    assert_int_equal(linked.status, PTX2SPV_UNDEFINED);
    assert_string_equal(linked.log, "a:8: Undefined reference to 'f' in 'a'\n  call f;\n       ^\n"); /* once, where it is used first */
    LINK(&linked, {"a", HEAD}, {"b", HEAD ".extern .global .u32 v; .global .u64 p = v;"});
    assert_int_equal(linked.status, PTX2SPV_UNDEFINED);
    LINK(&linked, {NULL, HEAD ".extern .func f();\n" KERNEL "call f; ret; }"});
    assert_int_equal(linked.status, PTX2SPV_UNDEFINED);
    assert_non_null(strstr(linked.log, "Unresolved extern function 'f'"));
    LINK(&linked, {NULL, HEAD ".extern .global .u32 v;\n" KERNEL "ld.global.u32 %r1, [v]; ret; }"});
    assert_int_equal(linked.status, PTX2SPV_UNDEFINED);
    assert_non_null(strstr(linked.log, "Unresolved extern variable 'v'"));
    LINK(&linked, {NULL, HEAD ".extern .func f(); .extern .global .u32 v;\n" KERNEL "ret; }"}); /* a declaration is not a use */
    expect_linked(&linked);
    ptx2spv_module_destroy(linked.module);
}

/* Syntax errors, and errors in kernels when they are compiled, name the text that contains them. */
static void errors_name_their_text(void **state)
{
    struct linked linked;
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = &linked};
    const struct ptx2spv_target target = {.subgroup_size = 32, .push_constant_bytes = 256, .int64 = 1};
    struct ptx2spv_kernel kernel;

    (void)state;
    LINK(&linked, {"good", HEAD}, {"bad", HEAD "\n.nonsense"});
    assert_int_equal(linked.status, PTX2SPV_INVALID_PTX);
    assert_memory_equal(linked.log, "bad:5: ", 7);
    LINK(&linked, {"caller", HEAD ".extern .func f();\n" KERNEL "call f; ret; }"},
         {"called", HEAD "\n\n\n.visible .func f() { .reg .b64 %rd1;\ncall %rd1; ret; }"});
    expect_linked(&linked);
    assert_int_equal(ptx2spv_kernel_compile(linked.module, 0, &target, &options, &kernel), PTX2SPV_INVALID_PTX);
    assert_memory_equal(linked.log, "called:8: `call'", 16);
    ptx2spv_module_destroy(linked.module);
}

static void a_linker_without_texts(void **state)
{
    struct ptx2spv_linker *linker;
    struct ptx2spv_module *module = NULL;

    (void)state;
    assert_int_equal(ptx2spv_linker_create(&linker), PTX2SPV_OK);
    assert_int_equal(ptx2spv_linker_finish(linker, NULL, &module), PTX2SPV_NOT_FOUND);
    assert_null(module);
    ptx2spv_linker_destroy(linker);
    ptx2spv_linker_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extern_names_find_their_definitions),
        cmocka_unit_test(names_without_a_directive_stay_apart),
        cmocka_unit_test(initializers_take_addresses_of_others),
        cmocka_unit_test(weak_gives_way),
        cmocka_unit_test(an_alias_keeps_what_gave_way),
        cmocka_unit_test(kernels_may_be_weak),
        cmocka_unit_test(the_largest_common_stays),
        cmocka_unit_test(dynamic_shared_arrays_need_no_definition),
        cmocka_unit_test(libraries_give_what_is_wanted),
        cmocka_unit_test(the_device_stands_before_a_library),
        cmocka_unit_test(system_functions_have_any_prototype),
        cmocka_unit_test(extern_shared_arrays_with_a_size_are_there),
        cmocka_unit_test(versions_are_the_newest),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(what_is_defined_nowhere),
        cmocka_unit_test(errors_name_their_text),
        cmocka_unit_test(a_linker_without_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
