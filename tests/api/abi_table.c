/* SPDX-License-Identifier: Apache-2.0 */
/* One table of abi_table.h. Compiled six times: with our cuda.h and with NVIDIA's first on the include path, and in three modes, selected
 * by ABI_TABLE (the table's name) and ABI_LIST (the names: the output of abi_list for that mode). If this header lacks a name, the compiler
 * reports an error with that name. */
#include <cuda.h>

#include "abi_table.h"

/* A macro of NVIDIA's header only. */
#if defined(__CUDA_API_PTDS) != ABI_THEIRS
#error "this is the other side's cuda.h"
#endif

#define TEXT_OF(expansion) #expansion
#define TEXT(macro) TEXT_OF(macro)

/* Distinguishes integers of one size from each other and from pointers: -1, 1 or 0. */
#define SIGN(type)                                                                                                                         \
    _Generic((type *)0, int *: -1, long *: -1, long long *: -1, unsigned *: 1, unsigned long *: 1, unsigned long long *: 1, default: 0)

static const struct abi_row rows[] = {
#define ENUMERATOR(enumerator) {#enumerator, (long long)enumerator, NULL},
#define MACRO(macro) {#macro, (long long)(macro), NULL},
#define TYPE(type)                                                                                                                         \
    {"sizeof " #type, (long long)sizeof(type), NULL}, {"alignment of " #type, (long long)_Alignof(type), NULL},                            \
        {"sign of " #type, SIGN(type), NULL},
#define FIELD(type, path)                                                                                                                  \
    {"offset of " #type "." #path, (long long)offsetof(type, path), NULL},                                                                 \
        {"size of " #type "." #path, (long long)sizeof(((type *)NULL)->path), NULL},                                                       \
        {"sign of " #type "." #path, SIGN(__typeof__(((type *)NULL)->path)), NULL},
#define RENAME(name, expansion) {name, 0, TEXT(expansion)},
#include ABI_LIST
};

const struct abi_table ABI_TABLE = {rows, sizeof rows / sizeof *rows};
