/* SPDX-License-Identifier: Apache-2.0 */
/* Switches to the default floating-point environment and back. An application that has not changed its own pays for one comparison. */
#include "float_environment.h"

#include <stdint.h>

/* Reading the control register alone takes a few cycles; saving and setting the whole environment takes over a hundred. */
static bool is_default(void)
{
#if defined(__x86_64__)
    enum { MXCSR_FLAGS = 0x3f, MXCSR_DEFAULT = 0x1f80 }; /* Intel SDM, volume 1, "MXCSR Control and Status Register" */

    return (__builtin_ia32_stmxcsr() & ~(unsigned)MXCSR_FLAGS) == MXCSR_DEFAULT;
#elif defined(__aarch64__)
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control == 0;
#else
    return false;
#endif
}

void ct_float_environment_enter(struct ct_float_environment *out_before)
{
    out_before->changed = !is_default() && !fegetenv(&out_before->caller) && !fesetenv(FE_DFL_ENV);
}

void ct_float_environment_restore(const struct ct_float_environment *before)
{
    if (before->changed)
        fesetenv(&before->caller);
}
