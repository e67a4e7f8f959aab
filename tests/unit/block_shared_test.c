/* SPDX-License-Identifier: Apache-2.0 */
/* How much shared memory a block gets, as a table. */
#include "core/device/block_shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { DEVICE_BYTES = 32768 };

static const struct row {
    const char *what;
    struct ptx2spv_kernel_info info;
    uint32_t dynamic_bytes;
    uint64_t own_bytes, all_bytes;
} rows[] = {
    {"none", {0}, 0, 0, 0},
    {"a static part has its own size", {.static_shared_bytes = 1001}, 0, 1004, 1004},
    {"a dynamic part that the kernel has no name for", {.static_shared_bytes = 16}, 4000, 16, 16},
    {"rounded up", {.uses_dynamic_shared = 1, .static_shared_bytes = 16, .dynamic_shared_offset = 16}, 1, 1024, 1024},
    {"a whole number of granules", {.uses_dynamic_shared = 1, .dynamic_shared_offset = 1024}, 1024, 2048, 2048},
    {"the kernel reads the size", {.uses_dynamic_shared = 1, .reads_shared_size = 1, .dynamic_shared_offset = 16}, 5, 24, 24},
    {"with an exchange area for 64 threads",
     {.uses_dynamic_shared = 1, .exchange_bytes = 8, .exchange_thread_bytes = 4},
     100,
     1024,
     1024 + 8 + 256},
    {"all that the device has", {.uses_dynamic_shared = 1}, DEVICE_BYTES, DEVICE_BYTES, DEVICE_BYTES},
    {"rounded up it would not fit",
     {.uses_dynamic_shared = 1, .exchange_bytes = 8},
     DEVICE_BYTES - 12,
     DEVICE_BYTES - 12,
     DEVICE_BYTES - 4},
    {"it does not fit", {.uses_dynamic_shared = 1}, DEVICE_BYTES + 1, DEVICE_BYTES + 4, DEVICE_BYTES + 4},
    {"in device memory", {.uses_dynamic_shared = 1, .shared_in_memory = 1}, DEVICE_BYTES + 1, DEVICE_BYTES + 1024, DEVICE_BYTES + 1024},
};

static void sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct ct_block_shared shared = ct_block_shared(&row->info, row->dynamic_bytes, 64, DEVICE_BYTES);

        if (shared.own_bytes != row->own_bytes || shared.all_bytes != row->all_bytes)
            fail_msg("%s: %llu and %llu bytes", row->what, (unsigned long long)shared.own_bytes, (unsigned long long)shared.all_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
