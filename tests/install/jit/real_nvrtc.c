/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in of `cuttle run` is before, for tests: a library with NVRTC's functions whose PTX is the source as it is, whose machine code is the
 * text "machine code", and whose log has the options. MAJOR: its version. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_PROGRAM = 4, LOG_BYTES = 256 };

struct program {
    char *source;
    bool is_real_architecture, is_lto;
    char log[LOG_BYTES];
};

int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(struct program **out, const char *source, const char *name, int n_headers, const char *const *headers,
                       const char *const *names);
int nvrtcDestroyProgram(struct program **program);
int nvrtcCompileProgram(struct program *program, int count, const char *const *options);
int nvrtcGetProgramLog(struct program *program, char *out);
int nvrtcGetPTXSize(struct program *program, size_t *out);
int nvrtcGetPTX(struct program *program, char *out);
int nvrtcGetCUBINSize(struct program *program, size_t *out);
int nvrtcGetCUBIN(struct program *program, char *out);

int nvrtcVersion(int *major, int *minor)
{
    *major = MAJOR;
    *minor = 0;
    return SUCCESS;
}

int nvrtcCreateProgram(struct program **out, const char *source, const char *name, int n_headers, const char *const *headers,
                       const char *const *names)
{
    struct program *program = calloc(1, sizeof *program);

    if (!program || name || n_headers || headers || names)
        abort();
    program->source = strdup(source);
    *out = program;
    return SUCCESS;
}

int nvrtcDestroyProgram(struct program **program)
{
    free((*program)->source);
    free(*program);
    *program = NULL;
    return SUCCESS;
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options)
{
    if (!program)
        return INVALID_PROGRAM;
    for (int i = 0; i < count; i++) {
        if (strlen(program->log) + strlen(options[i]) + 2 > LOG_BYTES)
            abort();
        if (i)
            strcat(program->log, " ");
        strcat(program->log, options[i]);
        program->is_real_architecture |= !strncmp(options[i], "-arch=sm_", 9) || !strncmp(options[i], "sm_", 3);
        program->is_lto |= !strcmp(options[i], "-dlto");
    }
    return SUCCESS;
}

int nvrtcGetProgramLog(struct program *program, char *out)
{
    strcpy(out, program->log);
    return SUCCESS;
}

int nvrtcGetPTXSize(struct program *program, size_t *out)
{
    *out = program->is_lto ? 1 : strlen(program->source) + 1;
    return SUCCESS;
}

int nvrtcGetPTX(struct program *program, char *out)
{
    strcpy(out, program->is_lto ? "" : program->source);
    return SUCCESS;
}

int nvrtcGetCUBINSize(struct program *program, size_t *out)
{
    if (!program)
        return INVALID_PROGRAM;
    *out = program->is_real_architecture && !program->is_lto ? sizeof "machine code" : 0;
    return SUCCESS;
}

int nvrtcGetCUBIN(struct program *program, char *out)
{
    if (!program->is_real_architecture)
        return INVALID_INPUT;
    strcpy(out, "machine code");
    return SUCCESS;
}
