/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a cuda.h as a table: made by abi_table.c from our header and from NVIDIA's, compared by abi_test.c. */
#ifndef CT_TESTS_ABI_TABLE_H
#define CT_TESTS_ABI_TABLE_H

#include <stddef.h>

struct abi_row {
    const char *name;
    long long value;  /* of an enumerator or macro; size or offset in bytes */
    const char *text; /* the symbol of a renamed function, or NULL */
};

struct abi_table {
    const struct abi_row *rows;
    size_t count;
};

/* The header, and the mode in which a program includes it. */
#define ABI_MODES(MODE) MODE(plain) MODE(per_thread) MODE(internal)
#define MODE(mode) extern const struct abi_table abi_ours_##mode, abi_theirs_##mode;
ABI_MODES(MODE)
#undef MODE

#endif
