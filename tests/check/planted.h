/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of check_planted: one row for each. Thread 3 of block 1 does it, in the line of the kernel that is marked with HERE. */
#ifndef CUTTLE_TESTS_PLANTED_H
#define CUTTLE_TESTS_PLANTED_H

/* PLANTED(name, kernel, good, bad, kind, space, operation, bytes): good and bad are what the kernel gets as its second parameter */
#define PLANTED_ROWS                                                                                                                       \
    PLANTED(write_behind, write, 63, 64, "out-of-bounds", "global", "write", 4)                                                            \
    PLANTED(write_far_behind, write, 0, 1000000, "out-of-bounds", "global", "write", 4)                                                    \
    PLANTED(write_before, write, 0, -1, "out-of-bounds", "global", "write", 4)                                                             \
    PLANTED(read_behind, read, 63, 64, "out-of-bounds", "global", "read", 4)                                                               \
    PLANTED(read_across, read4, 60, 64, "out-of-bounds", "global", "read", 16)                                                             \
    PLANTED(misaligned, read4, 0, 2, "misaligned", "global", "read", 16)                                                                   \
    PLANTED(atomic_behind, atomic, 63, 64, "out-of-bounds", "global", "atomic operation", 4)                                               \
    PLANTED(constant_write, constant, 0, 1, "read-only", "global", "write", 4)                                                             \
    PLANTED(variable_before, variable, 15, -1, "out-of-bounds", "global", "write", 4)                                                      \
    PLANTED(shared_behind, shared, 31, 32, "out-of-bounds", "shared", "write", 4)                                                          \
    PLANTED(shared_misaligned, shared_byte, 4, 6, "misaligned", "shared", "read", 4)                                                       \
    PLANTED(local_behind, local, 7, 8, "out-of-bounds", "local", "write", 4)                                                               \
    PLANTED(generic_shared, generic, 31, 32, "out-of-bounds", "generic", "write", 4)                                                       \
    PLANTED(generic_global, generic, 100, 164, "out-of-bounds", "generic", "write", 4)                                                     \
    PLANTED(loaded_pointer, indirect, 63, 64, "out-of-bounds", "global", "write", 4)                                                       \
    PLANTED(inlined, inlined, 63, 64, "out-of-bounds", "global", "write", 4)                                                               \
    PLANTED(cooperative, grid, 63, 64, "out-of-bounds", "global", "write", 4)                                                              \
    PLANTED(unmapped, write, 63, 64, "out-of-bounds", "global", "write", 4)                                                                \
    PLANTED(freed, write, 0, 1, "use-after-free", "global", "write", 4)                                                                    \
    PLANTED(freed_in_order, write, 0, 1, "use-after-free", "global", "write", 4)

#endif
