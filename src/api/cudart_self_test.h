/* SPDX-License-Identifier: Apache-2.0 */
/* The response to the self-test that NVIDIA's runtime runs on its driver at start-up. */
#ifndef CT_API_CUDART_SELF_TEST_H
#define CT_API_CUDART_SELF_TEST_H

#include "cuda.h"

#include <stddef.h>
#include <stdint.h>

/* The inputs of the response; addresses are those that the runtime received from cuGetExportTable. */
struct ct_self_test {
    uint32_t version;      /* of the runtime, 1000 * major + 10 * minor, plus the kind of response in the last digit */
    uint64_t unix_seconds; /* as the runtime passed it */
    uint64_t runtime_table, integrity_table, integrity_function;
};

/* *out is untouched on failure. NOT_SUPPORTED: this library was built without the self-test. */
CUresult ct_self_test_answer(const struct ct_self_test *question, uint64_t out[2]);

/* RFC 1319 and RFC 2104, for the unit test of this file. `key_bytes` is at most 16. */
void ct_md2(const void *bytes, size_t size, uint8_t out[16]);
void ct_hmac_md2(const void *key, size_t key_bytes, const void *bytes, size_t size, uint8_t out[16]);

#endif
