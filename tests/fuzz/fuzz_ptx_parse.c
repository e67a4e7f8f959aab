/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: lexer, parser, layout of variables, on any bytes. Whatever is taken must answer all queries. */
#include "cuttle/ptx2spv.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *__asan_default_options(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Arrays of any size are legal: calloc refuses those that are too large. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    *(size_t *)user += strlen(diagnostic->text);
}

static void check_module(const struct ptx2spv_module *module)
{
    unsigned n_relocations;
    const struct ptx2spv_relocation *relocations = ptx2spv_module_relocations(module, &n_relocations);

    for (unsigned i = 0; i < n_relocations; i++) {
        const struct ptx2spv_image *image = relocations[i].in_managed ? ptx2spv_module_managed_image(module) : ptx2spv_module_image(module);
        const struct ptx2spv_piece *piece = ptx2spv_image_piece(image, relocations[i].offset);

        if (!piece || relocations[i].offset + relocations[i].width > piece->offset + piece->size_bytes ||
            !ptx2spv_module_variable(module, relocations[i].variable))
            abort();
    }
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++)
        if (!ptx2spv_module_kernel(module, i)->name)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    size_t seen = 0;
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = &seen};
    struct ptx2spv_module *module = NULL;
    char *text = malloc(length ? length : 1); /* no byte more: reading beyond the end is seen */
    enum ptx2spv_status status;

    if (!text)
        return 0;
    memcpy(text, bytes, length);
    status = ptx2spv_module_create(text, length, &options, &module);
    free(text);
    if (status == PTX2SPV_OK)
        check_module(module);
    else if (status != PTX2SPV_OUT_OF_MEMORY && !seen)
        abort(); /* refused without a word */
    ptx2spv_module_destroy(module);
    return 0;
}
