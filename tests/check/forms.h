/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that make one access, in many forms, and the faults that each of them may have: check_forms KIND FORM [good]. Thread 3 of block 1 makes the
 * access, in the line that is marked with HERE. */
#ifndef CUTTLE_TESTS_FORMS_H
#define CUTTLE_TESTS_FORMS_H

/* What a form accesses, and how. */
enum { READ = 1, WRITE = 2, SHARED_READ = 4, SHARED_GROUP = 8, SHARED_WRITE = 16, LOCAL_READ = 32, LOCAL_WRITE = 64, CONSTANT = 128 };

/* FORM(name, space, operation, bytes, classes, code): the address is in %a, or of shared memory in %z; the result, or what is written, in %v0 or %l */
#define READ_FORMS                                                                                                                         \
    FORM(load_u32, "global", "read", 4, READ, "ld.global.u32 %v0, [%a];")                                                                  \
    FORM(load_u16, "global", "read", 2, READ, "ld.global.u16 %v0, [%a];")                                                                  \
    FORM(load_f32, "global", "read", 4, READ, "ld.global.f32 %v0, [%a];")                                                                  \
    FORM(load_u64, "global", "read", 8, READ, "ld.global.u64 %l, [%a];")                                                                   \
    FORM(load_v2, "global", "read", 8, READ, "ld.global.v2.u32 {%v0, %v1}, [%a];")                                                         \
    FORM(load_v4, "global", "read", 16, READ, "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];")                                              \
    FORM(load_texture_path, "global", "read", 4, READ, "ld.global.nc.u32 %v0, [%a];")                                                      \
    FORM(load_volatile, "global", "read", 4, READ, "ld.volatile.global.u32 %v0, [%a];")                                                    \
    FORM(load_generic, "generic", "read", 4, READ, "ld.u32 %v0, [%g];")                                                                    \
    FORM(load_walk, "global", "read", 4, READ, "ld.global.u32 %v0, [%w];")                                                                 \
    FORM(load_indirect, "global", "read", 4, READ, "ld.global.u32 %v0, [%d];")                                                             \
    FORM(load_atomic, "global", "atomic operation", 4, READ | WRITE, "atom.global.add.u32 %v0, [%a], 0;")
#define WRITE_FORMS                                                                                                                        \
    FORM(store_u32, "global", "write", 4, WRITE, "st.global.u32 [%a], %v0;")                                                               \
    FORM(store_u16, "global", "write", 2, WRITE, "st.global.u16 [%a], %v0;")                                                               \
    FORM(store_f32, "global", "write", 4, WRITE, "st.global.f32 [%a], %v0;")                                                               \
    FORM(store_u64, "global", "write", 8, WRITE, "st.global.u64 [%a], %l;")                                                                \
    FORM(store_v2, "global", "write", 8, WRITE, "st.global.v2.u32 [%a], {%v0, %v1};")                                                      \
    FORM(store_v4, "global", "write", 16, WRITE, "st.global.v4.u32 [%a], {%v0, %v1, %v2, %v3};")                                           \
    FORM(store_volatile, "global", "write", 4, WRITE, "st.volatile.global.u32 [%a], %v0;")                                                 \
    FORM(store_generic, "generic", "write", 4, WRITE, "st.u32 [%g], %v0;")                                                                 \
    FORM(store_walk, "global", "write", 4, WRITE, "st.global.u32 [%w], %v0;")                                                              \
    FORM(store_indirect, "global", "write", 4, WRITE, "st.global.u32 [%d], %v0;")                                                          \
    FORM(store_reduction, "global", "atomic operation", 4, WRITE, "red.global.max.u32 [%a], %v0;")

/* Of 64 words of shared memory, of which the first 32 were written. */
#define SHARED_FORMS                                                                                                                       \
    FORM(shared_u32, "shared", "read", 4, SHARED_READ, "ld.shared.u32 %v0, [%z];")                                                         \
    FORM(shared_u16, "shared", "read", 2, SHARED_READ, "ld.shared.u16 %v0, [%z];")                                                         \
    FORM(shared_u8, "shared", "read", 1, SHARED_READ, "ld.shared.u8 %v0, [%z];")                                                           \
    FORM(shared_f32, "shared", "read", 4, SHARED_READ, "ld.shared.f32 %v0, [%z];")                                                         \
    FORM(shared_u64, "shared", "read", 8, SHARED_READ, "ld.shared.u64 %l, [%z];")                                                          \
    FORM(shared_v2, "shared", "read", 8, SHARED_READ, "ld.shared.v2.u32 {%v0, %v1}, [%z];")                                                \
    FORM(shared_v4, "shared", "read", 16, SHARED_READ, "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%z];")                                     \
    FORM(shared_group, "shared", "read", 4, SHARED_GROUP,                                                                                  \
         "ld.shared.u32 %v1, [%z+-4];\nld.shared.u32 %v2, [%z+-12];\nld.shared.u32 %v3, [%z+-8];\nld.shared.u32 %v0, [%z];")               \
    FORM(shared_group_and_stores, "shared", "read", 4, SHARED_GROUP,                                                                       \
         "mov.u32 %b, room;\nmad.lo.u32 %t, %t, 4, %b;\nst.shared.u32 [%t+200], 7;\nld.shared.u32 %v1, [%t+200];\n"                        \
         "st.shared.u32 [%t+204], 7;\nst.shared.u32 [%t+208], 7;\nst.shared.u32 [%t+212], 7;\nld.shared.u32 %v2, [%t+204];\n"              \
         "add.u32 %v1, %v1, %v2;\nld.shared.u32 %v2, [%t+208];\nld.shared.u32 %v3, [%t+212];\nld.shared.u32 %v0, [%z];")                   \
    FORM(shared_s8, "shared", "read", 1, SHARED_READ, "ld.shared.s8 %v0, [%z];")                                                           \
    FORM(shared_volatile, "shared", "read", 4, SHARED_READ, "ld.volatile.shared.u32 %v0, [%z];")                                           \
    FORM(shared_atomic, "shared", "atomic operation", 4, SHARED_READ, "atom.shared.add.u32 %v0, [%z], 0;")

#define SHARED_WRITE_FORMS                                                                                                                 \
    FORM(shared_store_u32, "shared", "write", 4, SHARED_WRITE, "st.shared.u32 [%z], %v0;")                                                 \
    FORM(shared_store_u16, "shared", "write", 2, SHARED_WRITE, "st.shared.u16 [%z], %v0;")                                                 \
    FORM(shared_store_f32, "shared", "write", 4, SHARED_WRITE, "st.shared.f32 [%z], %v0;")                                                 \
    FORM(shared_store_u64, "shared", "write", 8, SHARED_WRITE, "st.shared.u64 [%z], %l;")                                                  \
    FORM(shared_store_v2, "shared", "write", 8, SHARED_WRITE, "st.shared.v2.u32 [%z], {%v0, %v1};")                                        \
    FORM(shared_store_v4, "shared", "write", 16, SHARED_WRITE, "st.shared.v4.u32 [%z], {%v0, %v1, %v2, %v3};")                             \
    FORM(shared_store_volatile, "shared", "write", 4, SHARED_WRITE, "st.volatile.shared.u32 [%z], %v0;")                                   \
    FORM(shared_store_relaxed, "shared", "write", 4, SHARED_WRITE, "st.relaxed.cta.shared.u32 [%z], %v0;")                                 \
    FORM(shared_exchange, "shared", "atomic operation", 4, SHARED_WRITE, "atom.shared.exch.b32 %v0, [%z], 1;")                             \
    FORM(shared_reduction, "shared", "atomic operation", 4, SHARED_WRITE, "red.shared.max.u32 [%z], %v0;")

/* Of 64 words of the thread's local memory, and of constant memory. */
#define LOCAL_FORMS                                                                                                                        \
    FORM(local_u32, "local", "read", 4, LOCAL_READ, "ld.local.u32 %v0, [%a];")                                                             \
    FORM(local_s32, "local", "read", 4, LOCAL_READ, "ld.local.s32 %v0, [%a];")                                                             \
    FORM(local_f32, "local", "read", 4, LOCAL_READ, "ld.local.f32 %v0, [%a];")                                                             \
    FORM(local_u16, "local", "read", 2, LOCAL_READ, "ld.local.u16 %v0, [%a];")                                                             \
    FORM(local_s16, "local", "read", 2, LOCAL_READ, "ld.local.s16 %v0, [%a];")                                                             \
    FORM(local_u8, "local", "read", 1, LOCAL_READ, "ld.local.u8 %v0, [%a];")                                                               \
    FORM(local_u64, "local", "read", 8, LOCAL_READ, "ld.local.u64 %l, [%a];")                                                              \
    FORM(local_b64, "local", "read", 8, LOCAL_READ, "ld.local.b64 %l, [%a];")                                                              \
    FORM(local_v2, "local", "read", 8, LOCAL_READ, "ld.local.v2.u32 {%v0, %v1}, [%a];")                                                    \
    FORM(local_v4, "local", "read", 16, LOCAL_READ, "ld.local.v4.u32 {%v0, %v1, %v2, %v3}, [%a];")                                         \
    FORM(local_volatile, "local", "read", 4, LOCAL_READ, "ld.volatile.local.u32 %v0, [%a];")                                               \
    FORM(local_generic, "local", "read", 4, LOCAL_READ, "cvta.local.u64 %l, %a; ld.u32 %v0, [%l];")                                        \
    FORM(local_store_u32, "local", "write", 4, LOCAL_WRITE, "st.local.u32 [%a], %v0;")                                                     \
    FORM(local_store_u16, "local", "write", 2, LOCAL_WRITE, "st.local.u16 [%a], %v0;")                                                     \
    FORM(local_store_u64, "local", "write", 8, LOCAL_WRITE, "st.local.u64 [%a], %l;")                                                      \
    FORM(local_store_v2, "local", "write", 8, LOCAL_WRITE, "st.local.v2.u32 [%a], {%v0, %v1};")                                            \
    FORM(local_store_v4, "local", "write", 16, LOCAL_WRITE, "st.local.v4.u32 [%a], {%v0, %v1, %v2, %v3};")
#define CONSTANT_FORMS                                                                                                                     \
    FORM(constant_u32, "global", "read", 4, CONSTANT, "ld.const.u32 %v0, [%a];")                                                           \
    FORM(constant_s32, "global", "read", 4, CONSTANT, "ld.const.s32 %v0, [%a];")                                                           \
    FORM(constant_b32, "global", "read", 4, CONSTANT, "ld.const.b32 %v0, [%a];")                                                           \
    FORM(constant_f32, "global", "read", 4, CONSTANT, "ld.const.f32 %v0, [%a];")                                                           \
    FORM(constant_u16, "global", "read", 2, CONSTANT, "ld.const.u16 %v0, [%a];")                                                           \
    FORM(constant_s16, "global", "read", 2, CONSTANT, "ld.const.s16 %v0, [%a];")                                                           \
    FORM(constant_u64, "global", "read", 8, CONSTANT, "ld.const.u64 %l, [%a];")                                                            \
    FORM(constant_b64, "global", "read", 8, CONSTANT, "ld.const.b64 %l, [%a];")                                                            \
    FORM(constant_v2, "global", "read", 8, CONSTANT, "ld.const.v2.u32 {%v0, %v1}, [%a];")                                                  \
    FORM(constant_v4, "global", "read", 16, CONSTANT, "ld.const.v4.u32 {%v0, %v1, %v2, %v3}, [%a];")

#define ALL_FORMS READ_FORMS WRITE_FORMS SHARED_FORMS SHARED_WRITE_FORMS LOCAL_FORMS CONSTANT_FORMS

/* FAULT(name, kind, options, classes, min_bytes): what may be wrong with accesses of these classes, of so many bytes at least */
#define FORM_FAULTS                                                                                                                        \
    FAULT(behind, "out-of-bounds", "", READ | WRITE, 1)                                                                                    \
    FAULT(before, "out-of-bounds", "", READ | WRITE, 1)                                                                                    \
    FAULT(misaligned, "misaligned", "", READ | WRITE, 1)                                                                                   \
    FAULT(freed, "use-after-free", "", READ | WRITE, 1)                                                                                    \
    FAULT(freed_in_order, "use-after-free", "", READ | WRITE, 1)                                                                           \
    FAULT(read_only, "read-only", "", WRITE, 1)                                                                                            \
    FAULT(unwritten, "unwritten", "--initcheck", READ, 1)                                                                                  \
    FAULT(unwritten_in_order, "unwritten", "--initcheck", READ, 1)                                                                         \
    FAULT(unwritten_shared, "unwritten", "--initcheck", SHARED_READ | SHARED_GROUP, 1)                                                     \
    FAULT(behind_shared, "out-of-bounds", "", SHARED_READ | SHARED_GROUP | SHARED_WRITE, 1)                                                \
    FAULT(misaligned_shared, "misaligned", "", SHARED_READ | SHARED_WRITE, 2)                                                              \
    FAULT(unwritten_local, "unwritten", "--initcheck", LOCAL_READ, 1)                                                                      \
    FAULT(behind_local, "out-of-bounds", "", LOCAL_READ | LOCAL_WRITE, 1)                                                                  \
    FAULT(misaligned_local, "misaligned", "", LOCAL_READ | LOCAL_WRITE, 2)                                                                 \
    FAULT(behind_constant, "out-of-bounds", "", CONSTANT, 1)                                                                               \
    FAULT(misaligned_constant, "misaligned", "", CONSTANT, 2)

#endif
