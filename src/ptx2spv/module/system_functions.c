/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that every CUDA device provides without a definition in the program, as PTX. If a module declares one of them and does
 * not define it, its text below is linked with the module; calls are then inlined like any others. The functions keep their data after
 * a pointer in a variable of the module, which the host sets when it places the variables: see include/cuttle/ptx2spv.h for the names
 * and layouts.
 *
 * vprintf (CUDA C++ Programming Guide, "Formatted Output") writes a record into a ring of 64-bit words. It runs over the format twice:
 * first it only counts the words; then, after reserving them by one atomic addition, it stores them. The header is written last, so that
 * the host sees complete records only. Each record holds the text of the format, followed by one word for each argument, or the text for
 * %s, so that it does not depend on memory that may change later. The arguments are in memory as the ABI defines: int and the types
 * promoted to int take 4 bytes, long, pointers and double 8, each at its alignment. Three constants with bit (c - 64) for each
 * conversion letter c give the size of the argument.
 *
 * cudaCG*: functions that cooperative groups of older toolkits call in the device runtime, and those that the PTX of libcudadevrt.a
 * calls in the system. The handle of a grid is the address in %envreg1 and %envreg2 (struct ptx2spv_grid); its second word counts
 * arrivals in 31 bits, and the last arrival flips the top bit. Grids of several devices have no handle. */
#include "module.h"

#include <string.h>

/* clang-format off */
static const char print_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .global .align 8 .b64 " PTX2SPV_PRINT_VARIABLE ";\n"
    /* Stores a text with its terminating 0 in words from `at` on; only counts them if `write` is 0. */
    ".weak .func (.param .b32 n_words) __cuttle_print_text(.param .b64 from, .param .b64 words, .param .b32 mask, .param .b32 at, .param .b32 write)\n"
    "{\n"
    "    .reg .pred %more, %room, %skip;\n"
    "    .reg .b32 %n, %byte, %shift, %mask, %at, %write;\n"
    "    .reg .b64 %from, %words, %word, %wide;\n"
    "    ld.param.u64 %from, [from];\n"
    "    ld.param.u64 %words, [words];\n"
    "    ld.param.u32 %mask, [mask];\n"
    "    ld.param.u32 %at, [at];\n"
    "    ld.param.u32 %write, [write];\n"
    "    mov.u32 %n, 0;\n"
    "    setp.eq.u32 %skip, %write, 0;\n"
    "next_word:\n"
    "    mov.u64 %word, 0;\n"
    "    mov.u32 %shift, 0;\n"
    "next_byte:\n"
    "    ld.u8 %byte, [%from];\n"
    "    add.u64 %from, %from, 1;\n"
    "    cvt.u64.u32 %wide, %byte;\n"
    "    shl.b64 %wide, %wide, %shift;\n"
    "    or.b64 %word, %word, %wide;\n"
    "    add.u32 %shift, %shift, 8;\n"
    "    setp.ne.u32 %more, %byte, 0;\n"
    "    setp.lt.and.u32 %room, %shift, 64, %more;\n"
    "    @%room bra next_byte;\n"
    "    @%skip bra stored;\n"
    "    and.b32 %byte, %at, %mask;\n"
    "    mul.wide.u32 %wide, %byte, 8;\n"
    "    add.u64 %wide, %wide, %words;\n"
    "    st.global.u64 [%wide], %word;\n"
    "stored:\n"
    "    add.u32 %at, %at, 1;\n"
    "    add.u32 %n, %n, 1;\n"
    "    @%more bra next_word;\n"
    "    st.param.b32 [n_words], %n;\n"
    "    ret;\n"
    "}\n"
    ".weak .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments)\n"
    "{\n"
    "    .reg .pred %p, %inside, %wide, %write;\n"
    "    .reg .b32 %result, %at, %used, %mask, %char, %bit, %offset, %n, %place, %writes;\n"
    "    .reg .b64 %ring, %words, %format, %arguments, %from, %value, %t;\n"
    "    ld.param.u64 %format, [format];\n"
    "    ld.param.u64 %arguments, [arguments];\n"
    "    mov.u32 %result, -1;\n"
    "    setp.eq.u64 %p, %format, 0;\n"
    "    @%p bra done;\n"
    "    mov.u32 %result, -2;\n"
    "    ld.global.u64 %ring, [" PTX2SPV_PRINT_VARIABLE "];\n"
    "    setp.eq.u64 %p, %ring, 0;\n"
    "    @%p bra done;\n"
    "    ld.global.u64 %words, [%ring];\n"
    "    ld.global.u32 %mask, [%ring+8];\n"
    "    mov.u32 %writes, 0;\n"
    "    mov.u32 %at, 0;\n"
    "record:\n"
    "    setp.ne.u32 %write, %writes, 0;\n"
    "    mov.u32 %used, 1;\n"
    "    mov.u32 %result, 0;\n"
    "    mov.u32 %offset, 0;\n"
    "    setp.ne.u32 %inside, %used, 1;\n"
    "    setp.ne.u32 %wide, %used, 1;\n"
    "    mov.u64 %value, %format;\n"
    "    bra text;\n"
    "scan:\n"
    "    ld.u8 %char, [%from];\n"
    "    add.u64 %from, %from, 1;\n"
    "    setp.eq.u32 %p, %char, 0;\n"
    "    @%p bra counted;\n"
    "    @%inside bra conversion;\n"
    "    setp.eq.u32 %inside, %char, 37;\n"          /* % */
    "    setp.ne.u32 %wide, %char, %char;\n"
    "    bra scan;\n"
    "conversion:\n"
    "    setp.eq.u32 %p, %char, 42;\n"               /* *: width or precision */
    "    @%p bra take_int;\n"
    "    setp.eq.u32 %p, %char, 104;\n"              /* h */
    "    @%p bra scan;\n"
    "    setp.ne.u32 %inside, %char, 37;\n"          /* %% takes no argument */
    "    setp.lt.u32 %p, %char, 64;\n"               /* flags, digits, dot */
    "    @%p bra scan;\n"
    "    sub.u32 %bit, %char, 64;\n"
    "    shr.u64 %t, 0x412140000001000, %bit;\n"
    "    and.b64 %t, %t, 1;\n"
    "    setp.ne.u64 %p, %t, 0;\n"
    "    @%p setp.eq.u32 %wide, %char, %char;\n"
    "    @%p bra scan;\n"
    "    setp.ne.u32 %inside, %char, %char;\n"
    "    shr.u64 %t, 0x120821801000000, %bit;\n"
    "    and.b64 %t, %t, 1;\n"
    "    setp.ne.u64 %p, %t, 0;\n"
    "    @%p bra take_integer;\n"
    "    shr.u64 %t, 0x100e2000000e2, %bit;\n"
    "    and.b64 %t, %t, 1;\n"
    "    setp.ne.u64 %p, %t, 0;\n"
    "    @%p bra take_wide;\n"
    "    setp.ne.u32 %p, %char, 115;\n"              /* s; any other letter takes no argument */
    "    @%p bra scan;\n"
    "take_wide:\n"
    "    add.u32 %offset, %offset, 7;\n"
    "    and.b32 %offset, %offset, 0xfffffff8;\n"
    "    cvt.u64.u32 %t, %offset;\n"
    "    add.u64 %t, %t, %arguments;\n"
    "    ld.u64 %value, [%t];\n"
    "    add.u32 %offset, %offset, 8;\n"
    "    setp.eq.u32 %p, %char, 115;\n"
    "    @!%p bra put;\n"
    "    add.u32 %result, %result, 1;\n"
    "    setp.ne.u64 %p, %value, 0;\n"
    "    @%p bra text;\n"
    "    mov.u64 %value, 0x0000296c6c756e28;\n"      /* the text "(null)" */
    "    sub.u32 %result, %result, 1;\n"
    "    bra put;\n"
    "take_integer:\n"
    "    @%wide bra take_wide;\n"
    "take_int:\n"
    "    add.u32 %offset, %offset, 3;\n"
    "    and.b32 %offset, %offset, 0xfffffffc;\n"
    "    cvt.u64.u32 %t, %offset;\n"
    "    add.u64 %t, %t, %arguments;\n"
    "    ld.u32 %n, [%t];\n"
    "    cvt.u64.u32 %value, %n;\n"
    "    add.u32 %offset, %offset, 4;\n"
    "put:\n"
    "    add.u32 %result, %result, 1;\n"
    "    @!%write bra is_put;\n"
    "    add.u32 %place, %at, %used;\n"
    "    and.b32 %place, %place, %mask;\n"
    "    mul.wide.u32 %t, %place, 8;\n"
    "    add.u64 %t, %t, %words;\n"
    "    st.global.u64 [%t], %value;\n"
    "is_put:\n"
    "    add.u32 %used, %used, 1;\n"
    "    bra scan;\n"
    "text:\n"                                        /* of an argument, or of the format, which is then scanned from its start */
    "    add.u32 %place, %at, %used;\n"
    "    {\n"
    "        .param .b32 n_words;\n"
    "        .param .b64 from;\n"
    "        .param .b64 words;\n"
    "        .param .b32 mask;\n"
    "        .param .b32 at;\n"
    "        .param .b32 write;\n"
    "        st.param.b64 [from], %value;\n"
    "        st.param.b64 [words], %words;\n"
    "        st.param.b32 [mask], %mask;\n"
    "        st.param.b32 [at], %place;\n"
    "        st.param.b32 [write], %writes;\n"
    "        call.uni (n_words), __cuttle_print_text, (from, words, mask, at, write);\n"
    "        ld.param.b32 %n, [n_words];\n"
    "    }\n"
    "    setp.eq.u32 %p, %used, 1;\n"
    "    @%p mov.u64 %from, %format;\n"
    "    add.u32 %used, %used, %n;\n"
    "    bra scan;\n"
    "counted:\n"
    "    @%write bra publish;\n"
    "    setp.gt.u32 %p, %used, %mask;\n"            /* the record must leave one word of the ring free */
    "    @%p mov.u32 %result, -2;\n"
    "    @%p bra done;\n"
    "    atom.global.add.u32 %at, [%ring+12], %used;\n"
    "    mov.u32 %writes, 1;\n"
    "    bra record;\n"
    "publish:\n"
    "    and.b32 %place, %at, %mask;\n"
    "    mul.wide.u32 %t, %place, 8;\n"
    "    add.u64 %t, %t, %words;\n"
    "    add.u32 %at, %at, 1;\n"
    "    mov.b64 %value, {%used, %at};\n"
    "    membar.sys;\n"
    "    st.volatile.global.u64 [%t], %value;\n"
    "done:\n"
    "    st.param.b32 [result], %result;\n"
    "    ret;\n"
    "}\n";

/* __assertfail (CUDA C++ Programming Guide, "Assertion") writes a record of seven words into the ring of vprintf, marked by the top bit
 * of the number of words in its header. The texts are not copied, which keeps the code small where a kernel has many assertions: they
 * are in the module's variables, where the host reads them. The thread then ends, and the kernel fails. */
#define ASSERT_PUT(word, index) \
    "    add.u32 %n, %at, " #index ";\n" \
    "    and.b32 %n, %n, %mask;\n" \
    "    mul.wide.u32 %t, %n, 8;\n" \
    "    add.u64 %t, %t, %words;\n" \
    "    st.global.u64 [%t], " word ";\n"
static const char assert_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .global .align 8 .b64 " PTX2SPV_PRINT_VARIABLE ";\n"
    ".extern .func " PTX_ASSERTION_FAILED "();\n"
    ".weak .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 char_bytes)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %mask, %at, %n, %x, %y, %z;\n"
    "    .reg .b64 %ring, %words, %word, %t;\n"
    "    ld.global.u64 %ring, [" PTX2SPV_PRINT_VARIABLE "];\n"
    "    setp.eq.u64 %p, %ring, 0;\n"
    "    @%p bra failed;\n"
    "    ld.global.u64 %words, [%ring];\n"
    "    ld.global.u32 %mask, [%ring+8];\n"
    "    atom.global.add.u32 %at, [%ring+12], 7;\n"
    "    ld.param.u64 %word, [message];\n"
    ASSERT_PUT("%word", 1)
    "    ld.param.u64 %word, [file];\n"
    ASSERT_PUT("%word", 2)
    "    ld.param.u64 %word, [function];\n"
    ASSERT_PUT("%word", 3)
    "    ld.param.u32 %x, [line];\n"
    "    cvt.u64.u32 %word, %x;\n"
    ASSERT_PUT("%word", 4)
    "    mov.u32 %x, %ctaid.x;\n"                   /* x is below 2^31, y and z below 2^16 */
    "    mov.u32 %y, %ctaid.y;\n"
    "    mov.u32 %z, %ctaid.z;\n"
    "    shl.b32 %z, %z, 16;\n"
    "    or.b32 %y, %y, %z;\n"
    "    mov.b64 %word, {%x, %y};\n"
    ASSERT_PUT("%word", 5)
    "    mov.u32 %x, %tid.x;\n"
    "    mov.u32 %y, %tid.y;\n"
    "    mov.u32 %z, %tid.z;\n"
    "    shl.b32 %z, %z, 16;\n"
    "    or.b32 %y, %y, %z;\n"
    "    mov.b64 %word, {%x, %y};\n"
    ASSERT_PUT("%word", 6)
    "    and.b32 %n, %at, %mask;\n"
    "    mul.wide.u32 %t, %n, 8;\n"
    "    add.u64 %t, %t, %words;\n"
    "    add.u32 %at, %at, 1;\n"
    "    mov.u32 %n, 0x80000007;\n"
    "    mov.b64 %word, {%n, %at};\n"
    "    membar.sys;\n"
    "    st.volatile.global.u64 [%t], %word;\n"
    "failed:\n"
    "    call.uni " PTX_ASSERTION_FAILED ";\n"
    "    ret;\n"
    "}\n";

/* malloc and free (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"): segregated free lists with 128 size classes, in
 * units of 16 bytes, four classes between two powers of two. A block has a header of one unit: its size class, whether it is allocated,
 * and, while it is free, the next free block. The free blocks of a class form a lock-free stack, whose head has a counter of changes
 * against the ABA problem of compare-and-swap. If a stack is empty, a block is cut from the end of the used part of the heap; at the end
 * of the heap, a larger free block is used. Neighbouring free blocks are not merged. No thread ever waits for another. */
static const char heap_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .global .align 8 .b64 " PTX2SPV_HEAP_VARIABLE ";\n"
    ".weak .func (.param .b64 result) malloc(.param .b64 size)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %class, %want, %units, %e, %n, %low, %high, %next;\n"
    "    .reg .b64 %size, %result, %heap, %total, %t, %list, %head, %new, %old, %block;\n"
    "    ld.param.u64 %size, [size];\n"
    "    mov.u64 %result, 0;\n"
    "    setp.eq.u64 %p, %size, 0;\n"
    "    @%p bra done;\n"
    "    ld.global.u64 %t, [" PTX2SPV_HEAP_VARIABLE "];\n"
    "    setp.eq.u64 %p, %t, 0;\n"
    "    @%p bra done;\n"
    "    ld.global.u64 %heap, [%t];\n"
    "    ld.global.u64 %total, [%t+8];\n"
    "    shl.b64 %t, %total, 4;\n"
    "    setp.ge.u64 %p, %size, %t;\n"
    "    @%p bra done;\n"
    "    add.u64 %t, %size, 31;\n"               /* including the header, in whole units */
    "    shr.u64 %t, %t, 4;\n"
    "    cvt.u32.u64 %units, %t;\n"
    "    mov.u32 %class, %units;\n"              /* below 8 units each size has a class of its own */
    "    setp.lt.u32 %p, %units, 8;\n"
    "    @%p bra classified;\n"
    "    bfind.u32 %e, %units;\n"                /* from there on, classes 4e - 4 to 4e - 1 have 4 to 7 times 2^(e - 2) units */
    "    sub.u32 %n, %e, 2;\n"
    "    mov.u32 %class, 1;\n"
    "    shl.b32 %class, %class, %n;\n"
    "    add.u32 %units, %units, %class;\n"
    "    sub.u32 %units, %units, 1;\n"
    "    shr.u32 %class, %units, %n;\n"
    "    shl.b32 %units, %class, %n;\n"
    "    mad.lo.u32 %class, %e, 4, %class;\n"
    "    sub.u32 %class, %class, 8;\n"
    "classified:\n"
    "    mov.u32 %want, %class;\n"
    "pop:\n"
    "    mul.wide.u32 %list, %want, 8;\n"
    "    add.u64 %list, %list, %heap;\n"
    "    ld.volatile.global.u64 %head, [%list+8];\n"
    "try:\n"
    "    mov.b64 {%low, %high}, %head;\n"
    "    setp.eq.u32 %p, %low, 0;\n"
    "    @%p bra none;\n"
    "    sub.u32 %n, %low, 1;\n"
    "    mul.wide.u32 %block, %n, 16;\n"
    "    add.u64 %block, %block, %heap;\n"
    "    add.u64 %block, %block, 2048;\n"
    "    ld.volatile.global.u32 %next, [%block+8];\n"
    "    add.u32 %high, %high, 1;\n"
    "    mov.b64 %new, {%next, %high};\n"
    "    atom.global.cas.b64 %old, [%list+8], %head, %new;\n"
    "    setp.eq.u64 %p, %old, %head;\n"
    "    mov.u64 %head, %old;\n"
    "    @!%p bra try;\n"
    "    bra found;\n"
    "none:\n"
    "    setp.ne.u32 %p, %want, %class;\n"
    "    @%p bra larger;\n"
    "    cvt.u64.u32 %t, %units;\n"
    "    atom.global.add.u64 %old, [%heap], %t;\n"
    "    add.u64 %new, %old, %t;\n"
    "    setp.gt.u64 %p, %new, %total;\n"
    "    @%p bra full;\n"
    "    shl.b64 %block, %old, 4;\n"
    "    add.u64 %block, %block, %heap;\n"
    "    add.u64 %block, %block, 2048;\n"
    "    st.global.u32 [%block], %class;\n"
    "    bra found;\n"
    "full:\n"                                    /* no thread got a block after it, so it can be given back */
    "    neg.s64 %t, %t;\n"
    "    atom.global.add.u64 %old, [%heap], %t;\n"
    "larger:\n"
    "    add.u32 %want, %want, 1;\n"
    "    setp.lt.u32 %p, %want, 128;\n"
    "    @%p bra pop;\n"
    "    bra done;\n"
    "found:\n"
    "    mov.u32 %n, 0x616c6976;\n"
    "    st.global.u32 [%block+4], %n;\n"
    "    add.u64 %result, %block, 16;\n"
    "done:\n"
    "    st.param.b64 [result], %result;\n"
    "    ret;\n"
    "}\n"
    /* Pointers to blocks that are not allocated or not in the heap are ignored. */
    ".weak .func free(.param .b64 pointer)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %n, %low, %high;\n"
    "    .reg .b64 %block, %heap, %total, %t, %list, %head, %new, %old;\n"
    "    ld.param.u64 %block, [pointer];\n"
    "    ld.global.u64 %t, [" PTX2SPV_HEAP_VARIABLE "];\n"
    "    setp.eq.u64 %p, %t, 0;\n"
    "    @%p bra done;\n"
    "    ld.global.u64 %heap, [%t];\n"
    "    ld.global.u64 %total, [%t+8];\n"
    "    sub.u64 %t, %block, %heap;\n"
    "    sub.u64 %t, %t, 2064;\n"          /* offset in the heap; wraps around if the pointer is NULL */
    "    and.b64 %old, %t, 15;\n"
    "    setp.ne.u64 %p, %old, 0;\n"
    "    @%p bra done;\n"
    "    shr.u64 %t, %t, 4;\n"
    "    setp.ge.u64 %p, %t, %total;\n"
    "    @%p bra done;\n"
    "    sub.u64 %block, %block, 16;\n"
    "    mov.u32 %n, 0;\n"
    "    atom.global.exch.b32 %low, [%block+4], %n;\n"
    "    setp.ne.u32 %p, %low, 0x616c6976;\n"
    "    @%p bra done;\n"
    "    ld.global.u32 %n, [%block];\n"
    "    mul.wide.u32 %list, %n, 8;\n"
    "    add.u64 %list, %list, %heap;\n"
    "    cvt.u32.u64 %n, %t;\n"
    "    add.u32 %n, %n, 1;\n"
    "    ld.volatile.global.u64 %head, [%list+8];\n"
    "try:\n"
    "    mov.b64 {%low, %high}, %head;\n"
    "    st.volatile.global.u32 [%block+8], %low;\n"
    "    membar.gl;\n"
    "    add.u32 %high, %high, 1;\n"
    "    mov.b64 %new, {%n, %high};\n"
    "    atom.global.cas.b64 %old, [%list+8], %head, %new;\n"
    "    setp.eq.u64 %p, %old, %head;\n"
    "    mov.u64 %head, %old;\n"
    "    @!%p bra try;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

/* The functions that libcudadevrt.a offers to programs and the system calls that its own PTX makes do the same. */
#define GRID_HANDLE(name) \
    ".weak .func (.param .b64 handle) " name "(.param .b32 scope)\n" \
    "{\n" \
    "    .reg .b32 %scope;\n" \
    "    .reg .b64 %handle;\n" \
    "    ld.param.u32 %scope, [scope];\n" \
    "    call (%handle), __cuttle_grid_handle, (%scope);\n" \
    "    st.param.b64 [handle], %handle;\n" \
    "    ret;\n" \
    "}\n"
#define GRID_SYNC(name, given) \
    ".weak .func (.param .b32 result) " name "(.param .b64 handle, .param .b32 flags)\n" \
    "{\n" \
    "    .reg .b32 %flags, %result;\n" \
    "    .reg .b64 %handle;\n" \
    "    ld.param.u64 %handle, [handle];\n" \
    "    ld.param.u32 %flags, [flags];\n" \
    "    call (%result), __cuttle_grid_sync, (%handle, " given ");\n" \
    "    st.param.b32 [result], %result;\n" \
    "    ret;\n" \
    "}\n"
#define GRID_SIZE(name) \
    ".weak .func (.param .b32 result) " name "(.param .b64 threads, .param .b64 grids, .param .b64 handle)\n" \
    "{\n" \
    "    .reg .pred %p;\n" \
    "    .reg .b32 %n;\n" \
    "    .reg .b64 %to;\n" \
    "    ld.param.u64 %to, [threads];\n" \
    "    call (%n), __cuttle_grid_place, (%to);\n" \
    "    st.u32 [%to], %n;\n" \
    "    ld.param.u64 %to, [grids];\n" \
    "    setp.eq.u64 %p, %to, 0;\n" \
    "    mov.u32 %n, 1;\n" \
    "    @!%p st.u32 [%to], %n;\n" \
    "    mov.u32 %n, 0;\n" \
    "    st.param.b32 [result], %n;\n" \
    "    ret;\n" \
    "}\n"
#define GRID_RANK(name) \
    ".weak .func (.param .b32 result) " name "(.param .b64 thread, .param .b64 grid, .param .b64 handle)\n" \
    "{\n" \
    "    .reg .pred %p;\n" \
    "    .reg .b32 %n;\n" \
    "    .reg .b64 %to;\n" \
    "    ld.param.u64 %to, [thread];\n" \
    "    call (%n), __cuttle_grid_place, (%to);\n" \
    "    ld.param.u64 %to, [grid];\n" \
    "    setp.eq.u64 %p, %to, 0;\n" \
    "    mov.u32 %n, 0;\n" \
    "    @!%p st.u32 [%to], %n;\n" \
    "    st.param.b32 [result], %n;\n" \
    "    ret;\n" \
    "}\n"
static const char grid_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    /* The number of this thread in the grid, and the number of threads in the grid. */
    ".weak .func (.param .b32 size) __cuttle_grid_place(.param .b64 rank)\n"
    "{\n"
    "    .reg .b32 %block, %blocks, %thread, %threads, %a, %b;\n"
    "    .reg .b64 %rank;\n"
    "    ld.param.u64 %rank, [rank];\n"
    "    mov.u32 %a, %ctaid.z;\n"
    "    mov.u32 %b, %nctaid.y;\n"
    "    mov.u32 %block, %ctaid.y;\n"
    "    mad.lo.u32 %block, %a, %b, %block;\n"
    "    mov.u32 %a, %nctaid.x;\n"
    "    mul.lo.u32 %blocks, %a, %b;\n"
    "    mov.u32 %b, %ctaid.x;\n"
    "    mad.lo.u32 %block, %block, %a, %b;\n"
    "    mov.u32 %a, %nctaid.z;\n"
    "    mul.lo.u32 %blocks, %blocks, %a;\n"
    "    mov.u32 %a, %tid.z;\n"
    "    mov.u32 %b, %ntid.y;\n"
    "    mov.u32 %thread, %tid.y;\n"
    "    mad.lo.u32 %thread, %a, %b, %thread;\n"
    "    mov.u32 %a, %ntid.x;\n"
    "    mul.lo.u32 %threads, %a, %b;\n"
    "    mov.u32 %b, %tid.x;\n"
    "    mad.lo.u32 %thread, %thread, %a, %b;\n"
    "    mov.u32 %a, %ntid.z;\n"
    "    mul.lo.u32 %threads, %threads, %a;\n"
    "    mad.lo.u32 %thread, %block, %threads, %thread;\n"
    "    st.u32 [%rank], %thread;\n"
    "    mul.lo.u32 %threads, %threads, %blocks;\n"
    "    st.param.b32 [size], %threads;\n"
    "    ret;\n"
    "}\n"
    ".weak .func (.param .b64 handle) __cuttle_grid_handle(.param .b32 scope)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %scope, %low, %high;\n"
    "    .reg .b64 %handle;\n"
    "    ld.param.u32 %scope, [scope];\n"
    "    mov.b32 %low, %envreg2;\n"
    "    mov.b32 %high, %envreg1;\n"
    "    mov.b64 %handle, {%low, %high};\n"
    "    setp.eq.u32 %p, %scope, 1;\n" /* 1 is the grid; 2 are grids of several devices */
    "    selp.b64 %handle, %handle, 0, %p;\n"
    "    st.param.b64 [handle], %handle;\n"
    "    ret;\n"
    "}\n"
    /* Waits for all blocks of the grid; called by one thread of each block. */
    ".weak .func __cuttle_grid_meet(.param .b64 handle)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %a, %b, %n, %old;\n"
    "    .reg .b64 %handle;\n"
    "    ld.param.u64 %handle, [handle];\n"
    "    mov.u32 %n, %nctaid.x;\n"
    "    mov.u32 %b, %nctaid.y;\n"
    "    mul.lo.u32 %n, %n, %b;\n"
    "    mov.u32 %b, %nctaid.z;\n"
    "    mul.lo.u32 %n, %n, %b;\n"
    "    mov.u32 %a, %ctaid.x;\n"
    "    mov.u32 %b, %ctaid.y;\n"
    "    or.b32 %a, %a, %b;\n"
    "    mov.u32 %b, %ctaid.z;\n"
    "    or.b32 %a, %a, %b;\n"
    "    setp.eq.u32 %p, %a, 0;\n"
    "    sub.u32 %n, 0x80000001, %n;\n" /* all blocks of a grid together add 2^31, which flips the top bit */
    "    selp.b32 %n, %n, 1, %p;\n"
    "    membar.gl;\n"
    "    atom.global.add.u32 %old, [%handle+4], %n;\n"
    "wait:\n"
    "    ld.volatile.global.u32 %a, [%handle+4];\n"
    "    xor.b32 %a, %a, %old;\n"
    "    setp.ge.s32 %p, %a, 0;\n"
    "    @%p bra wait;\n"
    "    membar.gl;\n"
    "    ret;\n"
    "}\n"
    /* The same, called by all threads of a block; or, if flags are odd, by one thread while the others wait at a barrier. */
    ".weak .func (.param .b32 result) __cuttle_grid_sync(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    "    .reg .pred %p, %alone;\n"
    "    .reg .b32 %a, %b, %result;\n"
    "    .reg .b64 %handle;\n"
    "    ld.param.u64 %handle, [handle];\n"
    "    ld.param.u32 %a, [flags];\n"
    "    and.b32 %a, %a, 1;\n"
    "    setp.ne.u32 %alone, %a, 0;\n"
    "    mov.u32 %result, 1;\n" /* cudaErrorInvalidValue */
    "    setp.eq.u64 %p, %handle, 0;\n"
    "    @%p bra done;\n"
    "    mov.u32 %result, 0;\n"
    "    @%alone bra lead;\n"
    "    bar.sync 0;\n"
    "    mov.u32 %a, %tid.x;\n"
    "    mov.u32 %b, %tid.y;\n"
    "    or.b32 %a, %a, %b;\n"
    "    mov.u32 %b, %tid.z;\n"
    "    or.b32 %a, %a, %b;\n"
    "    setp.ne.u32 %p, %a, 0;\n"
    "    @%p bra meet;\n"
    "lead:\n"
    "    call __cuttle_grid_meet, (%handle);\n"
    "    @%alone bra done;\n"
    "meet:\n"
    "    bar.sync 0;\n"
    "done:\n"
    "    st.param.b32 [result], %result;\n"
    "    ret;\n"
    "}\n"
    GRID_HANDLE("cudaCGGetIntrinsicHandle") GRID_HANDLE("__cuda_syscall_CGS_get_intrinsic_handle")
    GRID_SYNC("cudaCGSynchronize", "%flags") GRID_SYNC("cudaCGSynchronizeGrid", "0") GRID_SYNC("__cuda_syscall_CGS_sync", "%flags")
    GRID_SIZE("cudaCGGetSize") GRID_SIZE("__cuda_syscall_CGS_get_size")
    GRID_RANK("cudaCGGetRank") GRID_RANK("__cuda_syscall_CGS_get_rank");

/* atom.exch.b128 and atom.cas.b128 (PTX ISA, "atom"), which no device below has: under one of 64 locks, which follows from the address. Atomic
 * with respect to each other within a module; the value is read, and then written, by one access to a vector of two
 * halves, which other accesses to the same location see as a whole on devices that access such vectors at once. The section under the lock
 * is within the loop, so that lanes that run in lockstep do not wait for a lane behind it. Its accesses are weak, since the fences order them,
 * and a strong load that decides a branch would be taken for one that waits (sync/spin.c). */
static const char wide_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .global .align 4 .b32 __cuttle_locks[64];\n"
    ".weak .func (.param .align 8 .b8 result[16]) " PTX_WIDE_ATOMIC
    "(.param .b64 address, .param .b64 old0, .param .b64 old1, .param .b64 new0, .param .b64 new1, .param .b32 always)\n"
    "{\n"
    "    .reg .pred %p, %busy, %change;\n"
    "    .reg .b32 %n, %unused, %always;\n"
    "    .reg .b64 %address, %lock, %old<2>, %new<2>, %is<2>, %t;\n"
    "    ld.param.u64 %address, [address];\n"
    "    ld.param.u64 %old0, [old0];\n"
    "    ld.param.u64 %old1, [old1];\n"
    "    ld.param.u64 %new0, [new0];\n"
    "    ld.param.u64 %new1, [new1];\n"
    "    ld.param.u32 %always, [always];\n"
    "    shr.u64 %lock, %address, 2;\n" /* locations have 16 bytes, locks 4 */
    "    and.b64 %lock, %lock, 252;\n"
    "    mov.u64 %t, __cuttle_locks;\n"
    "    add.u64 %lock, %lock, %t;\n"
    "again:\n"
    "    atom.global.cas.b32 %n, [%lock], 0, 1;\n"
    "    setp.ne.u32 %busy, %n, 0;\n"
    "    @%busy bra next;\n"
    "    membar.gl;\n"
    "    ld.v2.u64 {%is0, %is1}, [%address];\n"
    "    setp.eq.u64 %p, %is0, %old0;\n"
    "    setp.eq.and.u64 %p, %is1, %old1, %p;\n"
    "    setp.ne.or.u32 %p, %always, 0, %p;\n"
    "    setp.ne.u64 %change, %is0, %new0;\n" /* loads are swaps that change nothing, also of memory that cannot be written */
    "    setp.ne.or.u64 %change, %is1, %new1, %change;\n"
    "    and.pred %p, %p, %change;\n"
    "    @!%p bra same;\n"
    "    st.v2.u64 [%address], {%new0, %new1};\n"
    "same:\n"
    "    membar.gl;\n"
    "    atom.global.exch.b32 %unused, [%lock], 0;\n"
    "next:\n"
    "    @%busy bra again;\n"
    "    st.param.b64 [result], %is0;\n"
    "    st.param.b64 [result+8], %is1;\n"
    "    ret;\n"
    "}\n";

/* cudaGraphSetConditional (CUDA Runtime API, Graph Management): the handle is the address of the condition (core/graph/conditions.h). */
static const char condition_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)\n"
    "{\n"
    "    .reg .b32 %value;\n"
    "    .reg .b64 %handle;\n"
    "    ld.param.u64 %handle, [handle];\n"
    "    ld.param.u32 %value, [value];\n"
    "    st.global.u32 [%handle], %value;\n"
    "    ret;\n"
    "}\n";
/* clang-format on */

static const struct {
    const char *name, *text;
} system_functions[] = {
    {"vprintf", print_text},
    {"__assertfail", assert_text},
    {"malloc", heap_text},
    {"free", heap_text},
    {"cudaCGGetIntrinsicHandle", grid_text},
    {"cudaCGSynchronizeGrid", grid_text},
    {"cudaCGSynchronize", grid_text},
    {"cudaCGGetSize", grid_text},
    {"cudaCGGetRank", grid_text},
    {"__cuda_syscall_CGS_get_intrinsic_handle", grid_text},
    {"__cuda_syscall_CGS_sync", grid_text},
    {"__cuda_syscall_CGS_get_size", grid_text},
    {"__cuda_syscall_CGS_get_rank", grid_text},
    {"cudaGraphSetConditional", condition_text},
    {PTX_WIDE_ATOMIC, wide_text},
};

const char *ptx_system_function_or_null(const struct ptx_function *function)
{
    for (size_t i = 0; !function->has_body && i < sizeof system_functions / sizeof *system_functions; i++)
        if (!strcmp(function->name, system_functions[i].name))
            return system_functions[i].text;
    return NULL;
}
