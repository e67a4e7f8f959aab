/* SPDX-License-Identifier: Apache-2.0 */
/* Linked with NVRTC. Status 3: it made machine code; 0: it made PTX. */
#include <stddef.h>
#include <string.h>

int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(void **out, const char *source, const char *name, int n_headers, const char *const *headers,
                       const char *const *names);
int nvrtcCompileProgram(void *program, int count, const char *const *options);
int nvrtcGetCUBIN(void *program, char *out);

int main(void)
{
    static const char *const options[] = {"-arch=sm_80"};
    char code[64];
    void *program;
    int version[2];

    if (nvrtcVersion(&version[0], &version[1]) || version[0] != 13)
        return 1;
    if (nvrtcCreateProgram(&program, "some PTX", NULL, 0, NULL, NULL) || nvrtcCompileProgram(program, 1, options) ||
        nvrtcGetCUBIN(program, code))
        return 1;
    return !strcmp(code, "machine code") ? 3 : strcmp(code, "some PTX") != 0;
}
