/* SPDX-License-Identifier: Apache-2.0 */
/* MD2, tested with the examples of RFC 1319, A.5; HMAC-MD2, tested with another implementation of its definition in RFC 2104. That the
 * final result is right is shown by the programs of tests/programs/cudart: they do not start otherwise. */
#include "api/cudart_self_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *digest;
} rfc1319[] = {
    {"", "8350e5a3e24c153df2275c9f80692773"},
    {"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
    {"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
    {"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
    {"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "da33def2a42df13975352846c30338cd"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890", "d5976f79d83d3a0dc9806c3c66f3efd8"},
};

static void md2_gives_the_examples_of_its_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rfc1319 / sizeof *rfc1319; i++) {
        uint8_t digest[16];
        char text[33];

        ct_md2(rfc1319[i].text, strlen(rfc1319[i].text), digest);
        for (int byte = 0; byte < 16; byte++)
            sprintf(text + 2 * byte, "%02x", digest[byte]);
        assert_string_equal(text, rfc1319[i].digest);
    }
}

static void hmac_is_as_its_rfc_defines_it(void **state)
{
    static const char key[] = "a key", message[] = "a message of more than one block";
    uint8_t inner[16 + sizeof message], outer[32], want[16], got[16];

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        uint8_t byte = i < strlen(key) ? (uint8_t)key[i] : 0;

        inner[i] = byte ^ 0x36;
        outer[i] = byte ^ 0x5c;
    }
    memcpy(inner + 16, message, sizeof message);
    ct_md2(inner, sizeof inner, outer + 16);
    ct_md2(outer, sizeof outer, want);
    ct_hmac_md2(key, strlen(key), message, sizeof message, got);
    assert_memory_equal(got, want, sizeof got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(md2_gives_the_examples_of_its_rfc),
        cmocka_unit_test(hmac_is_as_its_rfc_defines_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
