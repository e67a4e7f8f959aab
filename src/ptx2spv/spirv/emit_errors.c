/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be emitted. */
#include "emit.h"

#include <stdarg.h>
#include <stdio.h>

void ct_gen_refuse(struct ct_gen *g, enum ptx2spv_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ct_error(g->fn->compilation, g->where, status, "%s%s", text,
             status == PTX2SPV_UNSUPPORTED ? " is not supported"
             : status == PTX2SPV_INTERNAL  ? " (internal error)"
                                           : "");
    g->failed = true;
}

void ct_gen_need(struct ct_gen *g, bool has, const char *what)
{
    if (!has && !g->failed)
        ct_gen_refuse(g, PTX2SPV_TARGET_LACKS, "the kernel needs %s, which the device lacks", what);
}
