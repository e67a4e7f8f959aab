/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle api --nvml`, whose output is docs/nvml.md: the functions of libnvidia-ml.so.1, by the table that defines them. */
#include "nvml_table.h"

#include <stdio.h>
#include <string.h>

#define LINE_WIDTH 120

/* The rows of the table: a title (without a name), or a function. */
static const struct {
    const char *title, *name, *what;
} rows[] = {
#define GROUP(title) {title, NULL, NULL},
#define IMPLEMENTED(name, parameters, what) {NULL, #name, what},
#include "nvml/functions.def"
};

static const char *const refused[] = {
#define REFUSED(name) #name,
#include "nvml/functions.def"
};

void tool_print_nvml(void)
{
    const size_t n_refused = sizeof refused / sizeof *refused;
    size_t n_implemented = 1, width = 0; /* and nvmlErrorString */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        n_implemented += rows[i].name != NULL;
    printf("# NVML: what libnvidia-ml.so.1 does\n\n"
           "`cmake --build build --target docs_nvml` regenerates this page from src/nvml/functions.def, and a test checks that it is up to "
           "date.\n"
           "Of %zu functions %zu are implemented; the others return `NVML_ERROR_NOT_SUPPORTED`. Without nvmlInit all of them but "
           "nvmlErrorString,\n"
           "nvmlSystemGetNVMLVersion and nvmlSystemGetCudaDriverVersion return `NVML_ERROR_UNINITIALIZED`. "
           "[architecture.md](architecture.md) says how\n"
           "the library works.\n",
           n_implemented + n_refused, n_implemented);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].title)
            printf("\n## %s\n\n| function | what it returns |\n| --- | --- |\n", rows[i].title);
        else
            printf("| `%s` | %s |\n", rows[i].name, rows[i].what);
    printf("\n## Not supported\n\n");
    for (size_t i = 0; i < n_refused; i++) {
        const size_t length = strlen(refused[i]);

        printf("%s%s", !width ? "" : width + 1 + length > LINE_WIDTH ? "\n" : " ", refused[i]);
        width = !width || width + 1 + length > LINE_WIDTH ? length : width + 1 + length;
    }
    printf("\n");
}
