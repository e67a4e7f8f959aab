/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle selftest`: checks of a device through the API, as a program would use it. */
#ifndef CT_TOOLS_SELFTEST_H
#define CT_TOOLS_SELFTEST_H
/* Parts: basics.c, exactness.c, functions.c, interop.c, memory.c, speed.c. */

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>

enum selftest_result {
    SELFTEST_PASSED,
    SELFTEST_FAILED,
    SELFTEST_ABSENT, /* the device cannot do this, and says so */
};

struct selftest {
    CUdevice device; /* its primary context is current */
    char detail[400];
};

#define CHECK(name, title) enum selftest_result selftest_##name(struct selftest *test);
#include "checks.def"

/* Adds to the detail of a check, which is part of its line in the report. */
void selftest_say(struct selftest *test, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether a call succeeded; if not, the detail says which. */
bool selftest_try(struct selftest *test, CUresult result, const char *call);
#define TRY(call)                                                                                                                          \
    do {                                                                                                                                   \
        if (!selftest_try(test, (call), #call))                                                                                            \
            return SELFTEST_FAILED;                                                                                                        \
    } while (0)

/* The head of every PTX text here. */
#define SELFTEST_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
/* Loads a text with one kernel of the name "check". */
CUresult selftest_load(const char *ptx, CUmodule *out_module, CUfunction *out_function);
/* Seconds of a clock that only advances. */
double selftest_now(void);

#endif
