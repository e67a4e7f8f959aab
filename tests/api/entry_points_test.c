/* SPDX-License-Identifier: Apache-2.0 */
/* The library from a runtime's point of view: dlopen, dlsym, cuGetProcAddress. The expectations are cuda.h's documentation and the observed
 * requests of NVIDIA's runtime (cudart_lookups.def). The library's path is the first argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define __CUDA_API_VERSION_INTERNAL
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library_path;
static void *library;
static CUresult (*get_v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
static CUresult (*get_v1)(const char *, void **, int, cuuint64_t);

static void *symbol(const char *name)
{
    void *address = dlsym(library, name);

    if (!address)
        fail_msg("not exported: %s", name);
    return address;
}

static int load(void **state)
{
    (void)state;
    library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    *(void **)&get_v2 = symbol("cuGetProcAddress_v2");
    *(void **)&get_v1 = symbol("cuGetProcAddress");
    return 0;
}

/* Some programs and bindings load libcuda.so, without the version: it is next to the library and is the same. */
static void both_names_lead_to_one_library(void **state)
{
    char path[4096];
    void *by_short_name;
    size_t length;

    (void)state;
    length = (size_t)snprintf(path, sizeof path, "%s", library_path);
    assert_true(length < sizeof path && length > 5 && !strcmp(path + length - 5, ".so.1"));
    path[length - 2] = 0;
    by_short_name = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(by_short_name);
    assert_ptr_equal(dlsym(by_short_name, "cuInit"), symbol("cuInit"));
    dlclose(by_short_name);
}

static void every_symbol_is_exported(void **state)
{
    static const char *const names[] = {
#define SYMBOL(symbol, name, version, flavour, params, args) #symbol,
#include "entry_points.def"
    };

    (void)state;
    assert_in_range(sizeof names / sizeof *names, 637, SIZE_MAX); /* the number in NVIDIA's library of 13.0 for linking */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        symbol(names[i]);
}

/* Each symbol is returned for its name at the version of its row and not one version earlier. */
static void every_symbol_answers_from_its_version(void **state)
{
    static const struct {
        const char *symbol, *name;
        int version, flavour;
    } rows[] = {
#define ANY 0
#define LEGACY CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
#define SYMBOL(symbol, name, version, flavour, params, args) {#symbol, #name, version, flavour},
#include "entry_points.def"
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        void *address = NULL;

        assert_int_equal(get_v2(rows[i].name, &address, rows[i].version, (cuuint64_t)rows[i].flavour, &status), CUDA_SUCCESS);
        if (address != symbol(rows[i].symbol) || status != CU_GET_PROC_ADDRESS_SUCCESS)
            fail_msg("%s of CUDA %d is not %s", rows[i].name, rows[i].version, rows[i].symbol);
        assert_int_equal(get_v2(rows[i].name, &address, rows[i].version - 1, (cuuint64_t)rows[i].flavour, NULL), CUDA_SUCCESS);
        if (address == symbol(rows[i].symbol))
            fail_msg("%s answers %s before CUDA %d", rows[i].symbol, rows[i].name, rows[i].version);
    }
}

static void runtime_gets_what_it_asks_for(void **state)
{
    static const struct {
        const char *name;
        int version;
        cuuint64_t flags;
        const char *symbol;
    } lookups[] = {
#define LOOKUP(name, version, flags, symbol) {#name, version, flags, #symbol},
#include "cudart_lookups.def"
    };

    (void)state;
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) {
        const int version = lookups[i].version;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        void *new_way = NULL, *old_way = NULL;

        assert_int_equal(get_v2(lookups[i].name, &new_way, version, lookups[i].flags, &status), CUDA_SUCCESS);
        assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
        assert_int_equal(get_v1(lookups[i].name, &old_way, version, lookups[i].flags), CUDA_SUCCESS);
        if (new_way != symbol(lookups[i].symbol) || old_way != new_way)
            fail_msg("%s@%d is not %s", lookups[i].name, version, lookups[i].symbol);
    }
}

static void missing_names_give_errors(void **state)
{
    static const struct {
        const char *what, *name;
        int version;
        CUdriverProcAddressQueryResult status;
    } rows[] = {
        {"empty name", "", 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"no such function", "cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"a symbol is not a name", "cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"a longer name", "cuInitialize", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"newer than requested", "cuMulticastCreate", 12000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
        {"before the first version", "cuInit", 1999, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        void *address = &status;

        print_message("%s\n", rows[i].what);
        assert_int_equal(get_v2(rows[i].name, &address, rows[i].version, 0, &status), CUDA_SUCCESS);
        assert_null(address);
        assert_int_equal(status, rows[i].status);
        address = &status;
        assert_int_equal(get_v1(rows[i].name, &address, rows[i].version, 0), CUDA_ERROR_NOT_FOUND);
        assert_null(address);
    }
}

static void bad_arguments_are_refused(void **state)
{
    void *address = &address;

    (void)state;
    assert_int_equal(get_v2(NULL, &address, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get_v2("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get_v2("cuInit", &address, 13000, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get_v2("cuInit", &address, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get_v2("cuInit", &address, CUDA_VERSION + 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get_v1("cuInit", NULL, 13000, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(address, &address); /* untouched */
    assert_int_equal(get_v2("cuInit", &address, 13000, 0, NULL), CUDA_SUCCESS);
    assert_non_null(address);
}

static void driver_version_is_that_of_the_header(void **state)
{
    CUresult (*get)(int *) = NULL;
    int version = 0;

    (void)state;
    *(void **)&get = symbol("cuDriverGetVersion");
    assert_int_equal(get(&version), CUDA_SUCCESS);
    assert_int_equal(version, CUDA_VERSION);
    assert_int_equal(get(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void every_result_has_name_and_words(void **state)
{
    static const struct {
        const char *name;
        int value;
    } enumerators[] = {
#define ENUMERATOR(name) {#name, (int)name},
#define TYPE(name)
#define FIELD(type, path)
#define MACRO(name)
#define RENAME(name, expansion)
#include "cuda_h_ours_internal.def"
    };
    CUresult (*name_of)(CUresult, const char **) = NULL, (*words_of)(CUresult, const char **) = NULL;
    const char *text;
    unsigned codes = 0;

    (void)state;
    *(void **)&name_of = symbol("cuGetErrorName");
    *(void **)&words_of = symbol("cuGetErrorString");
    for (size_t i = 0; i < sizeof enumerators / sizeof *enumerators; i++) {
        if (strncmp(enumerators[i].name, "CUDA_ERROR", 10) != 0 && strcmp(enumerators[i].name, "CUDA_SUCCESS") != 0)
            continue;
        codes++;
        assert_int_equal(name_of((CUresult)enumerators[i].value, &text), CUDA_SUCCESS);
        assert_string_equal(text, enumerators[i].name);
        assert_int_equal(words_of((CUresult)enumerators[i].value, &text), CUDA_SUCCESS);
        assert_true(strlen(text) > 3);
    }
    assert_int_equal(codes, 101); /* the number in CUDA 13.0 */
    for (int code = 998; code <= 1000; code += 2) {
        text = "untouched";
        assert_int_equal(name_of((CUresult)code, &text), CUDA_ERROR_INVALID_VALUE);
        assert_null(text);
        text = "untouched";
        assert_int_equal(words_of((CUresult)code, &text), CUDA_ERROR_INVALID_VALUE);
        assert_null(text);
    }
    assert_int_equal(name_of(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(words_of(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void unknown_export_tables_are_refused(void **state)
{
    CUresult (*get)(const void **, const CUuuid *) = NULL;
    static const CUuuid unknown = {{0x12, 0x34}};
    const void *table = &unknown;

    (void)state;
    *(void **)&get = symbol("cuGetExportTable");
    assert_int_equal(get(&table, &unknown), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(table, &unknown);
    assert_int_equal(get(NULL, &unknown), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(get(&table, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_names_lead_to_one_library),
        cmocka_unit_test(every_symbol_is_exported),
        cmocka_unit_test(every_symbol_answers_from_its_version),
        cmocka_unit_test(runtime_gets_what_it_asks_for),
        cmocka_unit_test(missing_names_give_errors),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(driver_version_is_that_of_the_header),
        cmocka_unit_test(every_result_has_name_and_words),
        cmocka_unit_test(unknown_export_tables_are_refused),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: entry_points_test LIBCUDA\n");
        return EXIT_FAILURE;
    }
    library_path = argv[1];
    return cmocka_run_group_tests(tests, load, NULL);
}
