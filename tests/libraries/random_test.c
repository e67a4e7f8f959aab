/* SPDX-License-Identifier: Apache-2.0 */
/* cuRAND: generators give the same numbers on the device as the library's own on the host. MT19937 does, too, but it jumps ahead in a kernel
 * that takes CPUs more than a minute. */
#include "library_test.h"

#include <curand.h>

enum { COUNT = 20000 };

static void test_generators(void **state)
{
    static const curandRngType_t types[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_MRG32K3A};
    static uint32_t want[COUNT], found[COUNT];

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        curandGenerator_t host, device;
        void *out = device_copy(found, sizeof found);

        ok(curandCreateGeneratorHost(&host, types[i]));
        ok(curandCreateGenerator(&device, types[i]));
        ok(curandSetPseudoRandomGeneratorSeed(host, 1234));
        ok(curandSetPseudoRandomGeneratorSeed(device, 1234));
        ok(curandGenerate(host, want, COUNT));
        ok(curandGenerate(device, out, COUNT));
        take_back(found, out, sizeof found);
        assert_memory_equal(found, want, sizeof want);
        ok(curandDestroyGenerator(host));
        ok(curandDestroyGenerator(device));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_generators)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
