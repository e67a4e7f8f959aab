/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose code is long and flat: n times the same few instructions, with jumps between them, and what they compute. Kernel "k" has
 * the parameters out, flags (addresses of words) and mask (register m). Thread t has the key 3 t + m, and r is 0 at first. */
#ifndef CUTTLE_TESTS_FLAT_CODE_H
#define CUTTLE_TESTS_FLAT_CODE_H

#include <stdio.h>
#include <stdlib.h>

/* What comes before the code. */
static const char flat_code_head[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                     ".visible .entry k(.param .u64 out, .param .u64 flags, .param .u32 mask)\n{\n"
                                     ".reg .pred p; .reg .b32 r, t, key, m, x; .reg .b64 o, f, at;\n"
                                     "ld.param.u64 o,[out]; ld.param.u64 f,[flags]; ld.param.u32 m,[mask]; mov.u32 t,%tid.x;\n"
                                     "mad.lo.u32 key,t,3,m; mul.wide.u32 at,t,4; add.u64 o,o,at; mov.u32 r,0;\n";

/* In `step` and `tail`, # is the number of the step, 0 to n - 1; `tail` is repeated in descending order, if there is one. */
static const struct flat_code {
    const char *name, *step, *tail, *end;
} flat_codes[] = {
    {"early exits to one label", "mad.lo.u32 r,r,3,t; setp.eq.u32 p,key,#; @p bra OUT;\n", "", "OUT: st.global.u32 [o],r; ret;\n"},
    {"early returns", "mad.lo.u32 r,r,3,t; setp.eq.u32 p,key,#; @p ret;\n", "", "st.global.u32 [o],r; ret;\n"},
    {"early exits with work", "mad.lo.u32 r,r,3,t; setp.ne.u32 p,key,#; @p bra L#; add.u32 r,r,7; bra OUT; L#:\n", "",
     "OUT: st.global.u32 [o],r; ret;\n"},
    {"exits to labels in reverse order", "mad.lo.u32 r,r,3,t; setp.eq.u32 p,key,#; @p bra L#;\n", "L#: add.u32 r,r,#;\n",
     "st.global.u32 [o],r; ret;\n"},
    {"exits of a loop", "mad.lo.u32 r,r,3,t; setp.eq.u32 p,key,#; @p bra OUT;\n", "",
     "add.u32 r,r,1; sub.u32 key,key,2; setp.lt.s32 p,key,0; @!p bra AGAIN; OUT: st.global.u32 [o],r; ret;\n"},
    {"conditional shuffles",
     "shr.u32 x,t,5; add.u32 x,x,#; and.b32 x,x,m; setp.eq.u32 p,x,0; @p bra L#; shfl.sync.down.b32 r,r,1,31,-1; L#: add.u32 r,r,t;\n", "",
     "st.global.u32 [o],r; ret;\n"},
    {"polling loops",
     "setp.ne.u32 p,t,#; @p bra L#; st.volatile.global.u32 [f+4*#],5;\n"
     "L#: ld.volatile.global.u32 x,[f+4*#]; setp.eq.u32 p,x,0; @p bra L#; add.u32 r,r,x;\n",
     "", "st.global.u32 [o],r; ret;\n"},
};
enum flat_code_kind { FLAT_EXITS, FLAT_RETURNS, FLAT_WORK, FLAT_REVERSE, FLAT_LOOP, FLAT_SHUFFLES, FLAT_POLLS, FLAT_CODES };

static inline void flat_code_put(FILE *out, const char *text, unsigned number)
{
    for (; *text; text++) {
        if (*text == '#')
            fprintf(out, "%u", number);
        else
            fputc(*text, out);
    }
}

/* The text of a kernel with n steps, to be freed. */
static inline char *flat_code_text(enum flat_code_kind kind, unsigned n)
{
    const struct flat_code *code = &flat_codes[kind];
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        abort();
    fputs(flat_code_head, out);
    fputs("AGAIN:\n", out);
    for (unsigned i = 0; i < n; i++)
        flat_code_put(out, code->step, i);
    for (unsigned i = n; i-- > 0;)
        flat_code_put(out, code->tail, i);
    fputs(code->end, out);
    fputs("}\n", out);
    fclose(out);
    return text;
}

#endif
