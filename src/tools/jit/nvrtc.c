/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in before NVRTC, which compiles CUDA C++ while a program runs. Programs that ask it for machine code get PTX, which the driver
 * loads just as well: machine code of NVIDIA's GPUs runs nowhere else. All other functions are NVRTC's own (real_library.h).
 * Source: NVRTC, User Guide. */
#include "real_library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int nvrtcResult; /* an enumeration */
typedef struct _nvrtcProgram *nvrtcProgram;

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_INTERNAL_ERROR = 11 };

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out);

/* ---- options ---- */

static const char *const architecture_options[] = {"--gpu-architecture", "-arch"};

/* The length of the option's name if it selects an architecture, otherwise 0. */
static size_t architecture_option(const char *option)
{
    for (size_t i = 0; i < sizeof architecture_options / sizeof *architecture_options; i++) {
        const size_t length = strlen(architecture_options[i]);

        if (!strncmp(option, architecture_options[i], length) && (!option[length] || option[length] == '='))
            return length;
    }
    return 0;
}

/* Where the name of a real architecture begins in an option, as in "-arch=sm_80", or in "sm_80" after "-arch"; otherwise NULL. */
static const char *real_architecture_or_null(const char *option, const char *previous_or_null)
{
    const size_t length = architecture_option(option), before = previous_or_null ? architecture_option(previous_or_null) : 0;
    const char *value = NULL;

    if (length && option[length])
        value = option + length + 1;
    else if (before && !previous_or_null[before])
        value = option;
    return value && !strncmp(value, "sm_", 3) ? value : NULL;
}

static void free_options(char **options, int count)
{
    for (int i = 0; options && i < count; i++)
        free(options[i]);
    free(options);
}

/* Copies, with virtual architectures in place of real ones. NULL: no memory. */
static char **virtual_options_or_null(int count, const char *const *options)
{
    char **copies = calloc((size_t)count, sizeof *copies);
    bool complete = copies;

    for (int i = 0; complete && i < count; i++) {
        const char *real = real_architecture_or_null(options[i], i ? options[i - 1] : NULL);

        if (real)
            complete = asprintf(&copies[i], "%.*scompute_%s", (int)(real - options[i]), options[i], real + strlen("sm_")) >= 0;
        else
            complete = (copies[i] = strdup(options[i]));
    }
    if (complete)
        return copies;
    free_options(copies, count);
    return NULL;
}

/* As NVRTC's, but a real architecture is compiled for as the virtual one, so that no machine code is made. */
CT_EXPORTED nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    nvrtcResult (*real)(nvrtcProgram, int, const char *const *) = ct_real_function_or_null("nvrtcCompileProgram");
    nvrtcResult result;
    char **changed;

    if (!real)
        return NVRTC_ERROR_INTERNAL_ERROR;
    if (count <= 0 || !options)
        return real(program, count, options);
    if (!(changed = virtual_options_or_null(count, options)))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    result = real(program, count, (const char *const *)changed);
    free_options(changed, count);
    return result;
}

/* ---- results ---- */

static nvrtcResult real_get(const char *function, nvrtcProgram program, void *out)
{
    return ct_real_get(function, program, out, NVRTC_ERROR_INTERNAL_ERROR);
}

/* As NVRTC's; where there is no machine code, the size of the PTX with its NUL. Without PTX, after -dlto, it is 0. */
CT_EXPORTED nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out)
{
    const nvrtcResult result = real_get("nvrtcGetCUBINSize", program, out);
    nvrtcResult result_of_ptx;
    size_t size;

    if (result != NVRTC_SUCCESS || *out)
        return result;
    result_of_ptx = real_get("nvrtcGetPTXSize", program, &size);
    if (result_of_ptx == NVRTC_SUCCESS && size > 1)
        *out = size;
    return result_of_ptx;
}

/* As NVRTC's; where there is no machine code, the PTX with its NUL. */
CT_EXPORTED nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out)
{
    size_t size;
    const nvrtcResult result = real_get("nvrtcGetCUBINSize", program, &size);

    if (result != NVRTC_SUCCESS)
        return result;
    return real_get(size ? "nvrtcGetCUBIN" : "nvrtcGetPTX", program, out);
}
