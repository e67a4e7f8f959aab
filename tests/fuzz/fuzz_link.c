/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: linking. The input is several texts, each behind a byte 0xff; those behind 0xfe are members of a library. What links
 * is laid out: its relocations and kernels must make sense. */
#include "cuttle/ptx2spv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_all(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    size_t *total = user;

    *total += strlen(diagnostic->text) + (diagnostic->name ? strlen(diagnostic->name) : 0);
}

static void check(const struct ptx2spv_module *module)
{
    const uint64_t size_bytes = ptx2spv_module_image(module)->size_bytes;
    unsigned count;
    const struct ptx2spv_relocation *relocations = ptx2spv_module_relocations(module, &count);

    for (unsigned i = 0; i < count; i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module, relocations[i].variable);

        if (!variable || variable->external || relocations[i].width > size_bytes ||
            relocations[i].offset > size_bytes - relocations[i].width)
            abort();
    }
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++)
        if (!ptx2spv_module_kernel(module, i)->name)
            abort();
}

static bool is_separator(uint8_t byte)
{
    return byte >= 0xfe;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t total = 0, at = 0;
    const struct ptx2spv_options options = {.on_diagnostic = read_all, .user = &total};
    enum ptx2spv_status status = PTX2SPV_OK;
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_linker *linker;

    if (ptx2spv_linker_create(&linker) != PTX2SPV_OK)
        return 0;
    while (at < size) {
        const bool on_demand = bytes[at] == 0xfe;
        size_t end = at += is_separator(bytes[at]);
        struct ptx2spv_input input;
        char *text;

        while (end < size && !is_separator(bytes[end]))
            end++;
        text = malloc(end - at ? end - at : 1); /* no byte more: reading beyond the end is seen */
        if (!text)
            break;
        memcpy(text, bytes + at, end - at);
        input = (struct ptx2spv_input){text, end - at, end & 1 ? "a name" : NULL, on_demand};
        status = ptx2spv_linker_add(linker, &input, &options);
        free(text);
        at = end;
    }
    if (ptx2spv_linker_finish(linker, &options, &module) == PTX2SPV_OK) {
        if (status != PTX2SPV_OK)
            abort(); /* a failure stays */
        check(module);
        ptx2spv_module_destroy(module);
    }
    ptx2spv_linker_destroy(linker);
    return 0;
}
