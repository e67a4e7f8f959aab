/* SPDX-License-Identifier: Apache-2.0 */
/* Files with code: core finds the texts, the compiler parses and links them. */
#include "code_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult failure_of(enum ptx2spv_status status)
{
    return status == PTX2SPV_OUT_OF_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Links all texts. */
static enum ptx2spv_status link_texts(const struct ct_image *image, const struct ptx2spv_options *options, struct ptx2spv_module **out)
{
    struct ptx2spv_linker *linker;
    enum ptx2spv_status status = ptx2spv_linker_create(&linker);

    if (status != PTX2SPV_OK)
        return status;
    for (unsigned i = 0; i < image->count && status == PTX2SPV_OK; i++) {
        const struct ptx2spv_input input = {.text = image->texts[i].text, .length = image->texts[i].length, .name = image->texts[i].name};

        status = ptx2spv_linker_add(linker, &input, options);
    }
    if (status == PTX2SPV_OK)
        status = ptx2spv_linker_finish(linker, options, out);
    ptx2spv_linker_destroy(linker);
    return status;
}

/* Parses each text by itself. *out_needs_link: one uses what it does not define; the modules then do not count. */
static CUresult parse_texts(struct tool_code *code, const struct ptx2spv_options *options, bool *out_needs_link)
{
    const struct ct_image *image = &code->image;

    *out_needs_link = false;
    for (unsigned i = 0; i < image->count; i++) {
        static const struct ptx2spv_options quiet;
        const struct ct_ptx *text = &image->texts[i];
        enum ptx2spv_status status = ptx2spv_module_create(text->text, text->length, &quiet, &code->modules[code->n_modules]);

        if (status == PTX2SPV_OK) {
            code->n_modules++;
            continue;
        }
        if (status == PTX2SPV_OUT_OF_MEMORY)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (status == PTX2SPV_UNDEFINED && image->count > 1) {
            *out_needs_link = true;
            return CUDA_SUCCESS;
        }
        if (ptx2spv_module_create(text->text, text->length, options, &code->modules[code->n_modules]) != PTX2SPV_OK) /* with messages */
            code->n_refused++;
    }
    return CUDA_SUCCESS;
}

static void destroy_modules(struct tool_code *code)
{
    for (unsigned i = 0; i < code->n_modules; i++)
        ptx2spv_module_destroy(code->modules[i]);
    code->n_modules = code->n_refused = 0;
}

static CUresult parse(struct tool_code *code, const struct ptx2spv_options *options)
{
    enum ptx2spv_status status;
    bool needs_link;
    CUresult r;

    code->modules = calloc(code->image.count + 1, sizeof *code->modules);
    if (!code->modules)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = parse_texts(code, options, &needs_link);
    if (r != CUDA_SUCCESS || !needs_link)
        return r;
    destroy_modules(code);
    status = link_texts(&code->image, options, &code->modules[0]);
    code->is_linked = true;
    code->n_modules = status == PTX2SPV_OK;
    code->n_refused = status == PTX2SPV_OK ? 0 : code->image.count;
    return failure_of(status);
}

CUresult tool_code_open(const char *path, const struct ptx2spv_options *options, struct tool_code *out)
{
    struct tool_code code = {0};
    CUresult r = ct_image_read_file(path, &code.bytes, &code.size);

    if (r == CUDA_SUCCESS)
        r = ct_image_read_part(code.bytes, code.size, &code.image);
    if (r == CUDA_SUCCESS)
        r = parse(&code, options);
    if (r == CUDA_SUCCESS)
        *out = code;
    else
        tool_code_finish(&code);
    return r;
}

void tool_code_finish(struct tool_code *code)
{
    destroy_modules(code);
    free(code->modules);
    ct_image_finish(&code->image);
    free(code->bytes);
    *code = (struct tool_code){0};
}

unsigned tool_code_kernels(const struct tool_code *code)
{
    unsigned count = 0;

    for (unsigned i = 0; i < code->n_modules; i++)
        count += ptx2spv_module_kernel_count(code->modules[i]);
    return count;
}

const char *tool_code_failure(CUresult result)
{
    return result == CUDA_ERROR_FILE_NOT_FOUND ? "it cannot be read"
           : result == CUDA_ERROR_OUT_OF_MEMORY
               ? "there is not enough memory"
               : "it is neither PTX nor a fat binary nor a program or library of this machine, or it is damaged";
}

void tool_message_keep(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct tool_message *message = user;

    if (diagnostic->severity != PTX2SPV_ERROR || *message->text)
        return;
    message->line = diagnostic->line;
    message->column = diagnostic->column;
    snprintf(message->text, sizeof message->text, "%.*s", (int)strcspn(diagnostic->text, "\n"),
             diagnostic->text); /* the source line follows */
}

void tool_message_print(const struct tool_message *message, enum ptx2spv_status status)
{
    if (message->line)
        printf(": line %u", message->line);
    printf(": %s\n", *message->text ? message->text : ptx2spv_status_string(status));
}
