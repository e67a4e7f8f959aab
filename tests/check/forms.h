/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that make one access, in many forms, and the faults that each of them may have: check_forms KIND FORM [good]. Thread 3 of block 1 makes the
 * access, in the line that is marked with HERE. */
#ifndef CUTTLE_TESTS_FORMS_H
#define CUTTLE_TESTS_FORMS_H

/* FORM(name, space, operation, bytes, reads, writes, code): the address is in %a, the result, or what is written, in %v0 */
#define READ_FORMS                                                                                                                         \
    FORM(load_u32, "global", "read", 4, 1, 0, "ld.global.u32 %v0, [%a];")                                                                  \
    FORM(load_u16, "global", "read", 2, 1, 0, "ld.global.u16 %v0, [%a];")                                                                  \
    FORM(load_f32, "global", "read", 4, 1, 0, "ld.global.f32 %v0, [%a];")                                                                  \
    FORM(load_u64, "global", "read", 8, 1, 0, "ld.global.u64 %l, [%a];")                                                                   \
    FORM(load_v2, "global", "read", 8, 1, 0, "ld.global.v2.u32 {%v0, %v1}, [%a];")                                                         \
    FORM(load_v4, "global", "read", 16, 1, 0, "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];")                                              \
    FORM(load_texture_path, "global", "read", 4, 1, 0, "ld.global.nc.u32 %v0, [%a];")                                                      \
    FORM(load_volatile, "global", "read", 4, 1, 0, "ld.volatile.global.u32 %v0, [%a];")                                                    \
    FORM(load_generic, "generic", "read", 4, 1, 0, "ld.u32 %v0, [%g];")                                                                    \
    FORM(load_walk, "global", "read", 4, 1, 0, "ld.global.u32 %v0, [%w];")                                                                 \
    FORM(load_indirect, "global", "read", 4, 1, 0, "ld.global.u32 %v0, [%d];")                                                             \
    FORM(load_atomic, "global", "atomic operation", 4, 1, 1, "atom.global.add.u32 %v0, [%a], 0;")
#define WRITE_FORMS                                                                                                                        \
    FORM(store_u32, "global", "write", 4, 0, 1, "st.global.u32 [%a], %v0;")                                                                \
    FORM(store_u16, "global", "write", 2, 0, 1, "st.global.u16 [%a], %v0;")                                                                \
    FORM(store_f32, "global", "write", 4, 0, 1, "st.global.f32 [%a], %v0;")                                                                \
    FORM(store_u64, "global", "write", 8, 0, 1, "st.global.u64 [%a], %l;")                                                                 \
    FORM(store_v2, "global", "write", 8, 0, 1, "st.global.v2.u32 [%a], {%v0, %v1};")                                                       \
    FORM(store_v4, "global", "write", 16, 0, 1, "st.global.v4.u32 [%a], {%v0, %v1, %v2, %v3};")                                            \
    FORM(store_volatile, "global", "write", 4, 0, 1, "st.volatile.global.u32 [%a], %v0;")                                                  \
    FORM(store_generic, "generic", "write", 4, 0, 1, "st.u32 [%g], %v0;")                                                                  \
    FORM(store_walk, "global", "write", 4, 0, 1, "st.global.u32 [%w], %v0;")                                                               \
    FORM(store_indirect, "global", "write", 4, 0, 1, "st.global.u32 [%d], %v0;")                                                           \
    FORM(store_reduction, "global", "atomic operation", 4, 0, 1, "red.global.max.u32 [%a], %v0;")

/* Reads of shared memory, of 64 words at %z, of which the first 32 were written; the offset is in %i. */
#define SHARED_FORMS                                                                                                                       \
    FORM(shared_u32, "shared", "read", 4, 1, 0, "ld.shared.u32 %v0, [%z];")                                                                \
    FORM(shared_u16, "shared", "read", 2, 1, 0, "ld.shared.u16 %v0, [%z];")                                                                \
    FORM(shared_u8, "shared", "read", 1, 1, 0, "ld.shared.u8 %v0, [%z];")                                                                  \
    FORM(shared_f32, "shared", "read", 4, 1, 0, "ld.shared.f32 %v0, [%z];")                                                                \
    FORM(shared_u64, "shared", "read", 8, 1, 0, "ld.shared.u64 %l, [%z];")                                                                 \
    FORM(shared_v2, "shared", "read", 8, 1, 0, "ld.shared.v2.u32 {%v0, %v1}, [%z];")                                                       \
    FORM(shared_v4, "shared", "read", 16, 1, 0, "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%z];")                                            \
    FORM(shared_group, "shared", "read", 4, 1, 0,                                                                                          \
         "ld.shared.u32 %v1, [%z+-4];\nld.shared.u32 %v2, [%z+-12];\nld.shared.u32 %v3, [%z+-8];\nld.shared.u32 %v0, [%z];")               \
    FORM(shared_s8, "shared", "read", 1, 1, 0, "ld.shared.s8 %v0, [%z];")                                                                  \
    FORM(shared_volatile, "shared", "read", 4, 1, 0, "ld.volatile.shared.u32 %v0, [%z];")                                                  \
    FORM(shared_atomic, "shared", "atomic operation", 4, 1, 0, "atom.shared.add.u32 %v0, [%z], 0;")

/* FAULT(name, kind, options, of_reads, of_writes, of_shared): what may be wrong with the access */
enum { LEFT_OUT = 77 }; /* the program's exit status: the device has no such memory */

#define FORM_FAULTS                                                                                                                        \
    FAULT(behind, "out-of-bounds", "", 1, 1, 0)                                                                                            \
    FAULT(before, "out-of-bounds", "", 1, 1, 0)                                                                                            \
    FAULT(misaligned, "misaligned", "", 1, 1, 0)                                                                                           \
    FAULT(freed, "use-after-free", "", 1, 1, 0)                                                                                            \
    FAULT(freed_in_order, "use-after-free", "", 1, 1, 0)                                                                                   \
    FAULT(read_only, "read-only", "", 0, 1, 0)                                                                                             \
    FAULT(unwritten, "unwritten", "--initcheck", 1, 0, 0)                                                                                  \
    FAULT(unwritten_in_order, "unwritten", "--initcheck", 1, 0, 0)                                                                         \
    FAULT(unwritten_shared, "unwritten", "--initcheck", 0, 0, 1)                                                                           \
    FAULT(behind_shared, "out-of-bounds", "", 0, 0, 1)

#endif
