/* SPDX-License-Identifier: Apache-2.0 */
/* Modules with large variables. All bytes without an initial value are zero, also if the memory was used before; the host keeps no copy of
 * them. */
#include "api_test.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define MIB ((size_t)1 << 20)

static CUdeviceptr address_of(CUmodule module, const char *name)
{
    CUdeviceptr address;
    size_t size;

    ok(cuModuleGetGlobal(&address, &size, module, name));
    return address;
}

static void read_at(CUdeviceptr address, void *to, size_t size)
{
    ok(cuMemcpyDtoH(to, address, size));
}

static void expect_bytes(CUdeviceptr address, size_t size, unsigned char value)
{
    unsigned char *bytes = malloc(size);

    assert_non_null(bytes);
    read_at(address, bytes, size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            fail_msg("byte %zu is %u, not %u", i, bytes[i], value);
    free(bytes);
}

/* The most memory that the process has had, in MiB. */
static unsigned long peak_mib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long kib = 0;
    char line[128];

    assert_non_null(status);
    while (fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %lu", &kib) != 1)
        ;
    fclose(status);
    assert_true(kib > 0);
    return kib / 1024;
}

/* On CPU devices the device's memory is the process's, too: 1 GiB at most. A copy of the host would be another. */
static void a_large_array_costs_no_host_memory(void **state)
{
    static const char ptx[] = HEAD ".visible .global .u32 before = 7;\n"
                                   ".visible .global .align 8 .b8 big[1073741824];\n"
                                   ".visible .global .u32 behind = 9;\n"
                                   ".visible .global .u64 there = big + 4096;\n"
                                   ".visible .global .u64 table[1048576] = {11, there};\n";
    const unsigned long peak_before = peak_mib();
    uint64_t words[3];
    uint32_t word;
    CUmodule module;
    CUdeviceptr big;

    (void)state;
    ok(cuModuleLoadData(&module, ptx));
    assert_in_range(peak_mib(), peak_before, peak_before + 1024 + 256);
    big = address_of(module, "big");
    expect_bytes(big, MIB, 0);
    expect_bytes(big + 511 * MIB + 17, MIB, 0);
    expect_bytes(big + 1023 * MIB, MIB, 0);
    read_at(address_of(module, "before"), &word, sizeof word);
    assert_int_equal(word, 7);
    read_at(address_of(module, "behind"), &word, sizeof word);
    assert_int_equal(word, 9);
    read_at(address_of(module, "there"), words, sizeof *words);
    assert_int_equal(words[0], big + 4096);
    read_at(address_of(module, "table"), words, sizeof words);
    assert_int_equal(words[0], 11);
    assert_int_equal(words[1], address_of(module, "there"));
    assert_int_equal(words[2], 0);
    expect_bytes(address_of(module, "table") + 4 * MIB, 4 * MIB, 0);
    ok(cuModuleUnload(module));
}

/* Memory that was freed is likely to be used again for as much. Neither the zeros nor the values reach beyond the variables. */
static void memory_that_was_used_before(void **state)
{
    static const struct {
        size_t bytes;
        const char *ptx;
    } rows[] = {
        {5000, HEAD ".visible .global .align 1 .b8 big[5000];\n"},
        {300000, HEAD ".visible .global .align 1 .b8 big[300000];\n"},
        {64 * MIB, HEAD ".visible .global .align 1 .b8 big[67108864];\n"},
        {64 * MIB + 123, HEAD ".visible .global .align 1 .b8 big[67108987];\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUdeviceptr used[3];
        CUmodule module;

        for (int k = 0; k < 3; k++) {
            ok(cuMemAlloc(&used[k], rows[i].bytes));
            ok(cuMemsetD8(used[k], 0xa5, rows[i].bytes));
        }
        ok(cuCtxSynchronize());
        ok(cuMemFree(used[1]));
        ok(cuModuleLoadData(&module, rows[i].ptx));
        expect_bytes(address_of(module, "big"), rows[i].bytes, 0);
        expect_bytes(used[0], rows[i].bytes, 0xa5);
        expect_bytes(used[2], rows[i].bytes, 0xa5);
        ok(cuModuleUnload(module));
        ok(cuMemFree(used[0]));
        ok(cuMemFree(used[2]));
    }
}

static void an_array_larger_than_the_device(void **state)
{
    const unsigned long peak_before = peak_mib();
    CUmodule module;

    (void)state;
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuModuleLoadData(&module, HEAD ".global .b8 big[70368744177664];\n"));
    assert_in_range(peak_mib(), peak_before, peak_before + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_larger_than_the_device), /* first, while the peak is low */
        cmocka_unit_test(a_large_array_costs_no_host_memory),
        cmocka_unit_test(memory_that_was_used_before),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
