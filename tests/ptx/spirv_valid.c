/* SPDX-License-Identifier: Apache-2.0 */
#include "spirv_check.h"
#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void assert_valid_spirv(const uint32_t *words, size_t n_words)
{
    char why[256] = "";

    if (!spirv_check(words, n_words, why, sizeof why))
        fail_msg("%s", why);
}
