/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to the self-test that NVIDIA's runtime makes of its driver at start-up. */
#ifndef CT_API_CUDART_SELF_TEST_H
#define CT_API_CUDART_SELF_TEST_H

#include "cuda.h"

#include <stddef.h>
#include <stdint.h>

/* What goes into the answer: addresses as the runtime got them from cuGetExportTable. */
struct ct_self_test {
    uint32_t version;      /* of the runtime, 1000 * major + 10 * minor, plus the kind of answer in the last digit */
    uint64_t unix_seconds; /* as the runtime gave it */
    uint64_t runtime_table, integrity_table, integrity_function;
};

/* *out is untouched on failure. NOT_SUPPORTED: this library was built without the answer. */
CUresult ct_self_test_answer(const struct ct_self_test *question, uint64_t out[2]);

/* RFC 1319 and RFC 2104, for the test of this file. `key_bytes` is at most 16. */
void ct_md2(const void *bytes, size_t size, uint8_t out[16]);
void ct_hmac_md2(const void *key, size_t key_bytes, const void *bytes, size_t size, uint8_t out[16]);

#endif
