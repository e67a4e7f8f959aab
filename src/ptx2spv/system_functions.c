/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that every CUDA device has without a definition, as PTX. A module that declares one and does not define it gets the text
 * below as one more input; calls are then inlined as any others. What the functions keep in memory hangs on a variable of the
 * module, which the host sets when it places the variables: see include/cuttle/ptx2spv.h for their names and layouts.
 *
 * vprintf (CUDA C++ Programming Guide, "Formatted Output"): a record in a ring of 64-bit words. It is written twice over: first only
 * counted, then, with its place taken by one atomic addition, stored. The header comes last, so that the host sees whole records. Each
 * record holds the text of the format, and behind it one word for each argument, or the text for %s, so that nothing it says depends
 * on memory that may change. The arguments lie in memory as the ABI has them: int and what becomes int take 4 bytes, long, pointers and
 * double 8, each at its alignment. What a conversion takes is read off its letter by bits in three constants: bit c - 64. */
#include "module.h"

#include <string.h>

/* clang-format off */
static const char print_text[] =
    ".version 3.1\n.target sm_20\n.address_size 64\n"
    ".weak .global .align 8 .b64 " PTX2SPV_PRINT_VARIABLE ";\n"
    /* Stores a text with its 0 in words from `at` on; only counts them where `write` is 0. */
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
    "    setp.eq.u32 %p, %char, 42;\n"               /* *: the width or the precision */
    "    @%p bra take_int;\n"
    "    setp.eq.u32 %p, %char, 104;\n"              /* h */
    "    @%p bra scan;\n"
    "    setp.ne.u32 %inside, %char, 37;\n"          /* %% takes nothing */
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
    "    setp.ne.u32 %p, %char, 115;\n"              /* s; anything else takes nothing */
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
    "text:\n"                                        /* of the format, which is read from the start then, or of an argument */
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
    "    setp.gt.u32 %p, %used, %mask;\n"            /* it must leave a word free */
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
/* clang-format on */

static const struct {
    const char *name, *text;
} system_functions[] = {
    {"vprintf", print_text},
};

const char *ptx_system_function_or_null(const struct ptx_function *function)
{
    for (size_t i = 0; !function->has_body && i < sizeof system_functions / sizeof *system_functions; i++)
        if (!strcmp(function->name, system_functions[i].name))
            return system_functions[i].text;
    return NULL;
}
