/* SPDX-License-Identifier: Apache-2.0 */
/* Linking. Inputs are parsed when they are added, so that errors in an input are reported at once. The resulting image (linked_image.h)
 * contains the texts: kernels are compiled where they run. */
#include "link_state.h"

#include "archive.h"
#include "code.h"
#include "core/base/float_environment.h"
#include "image.h"
#include "linked_image.h"
#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "link"

struct ct_link_state {
    struct ct_object object;
    atomic_bool busy; /* a thread uses it; an application that uses it in two threads at once violates the API */
    struct ct_jit jit;
    struct ptx2spv_linker *linker;
    struct ct_ptx *texts; /* copies, each with its name if it has one; in the order of the linker's indices */
    unsigned count, capacity;
    unsigned n_without_ptx; /* the number of inputs with only machine code */
    unsigned char *image;
    size_t image_size;
};

static void free_state(struct ct_object *object)
{
    struct ct_link_state *state = (struct ct_link_state *)object;

    for (unsigned i = 0; i < state->count; i++)
        ct_ptx_finish(&state->texts[i]);
    free(state->texts);
    ptx2spv_linker_destroy(state->linker);
    free(state->image);
    free(state);
}

CUresult ct_link_state_create(const struct ct_jit *jit, CUlinkState *out)
{
    struct ct_link_state *state = calloc(1, sizeof *state);
    CUresult r;

    if (!state)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a link state");
    ct_object_init(&state->object, CT_OBJECT_LINK_STATE, free_state);
    state->jit = *jit;
    r = ct_jit_result(ptx2spv_linker_create(&state->linker));
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&state->object);
    if (r == CUDA_SUCCESS)
        *out = state->object.handle;
    ct_object_release(&state->object);
    return r;
}

CUresult ct_link_state_enter(CUlinkState handle, struct ct_link_state **out)
{
    struct ct_link_state *state = (struct ct_link_state *)ct_object_find_or_null(CT_OBJECT_LINK_STATE, handle);

    if (!state)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a link state", (void *)handle);
    if (atomic_exchange_explicit(&state->busy, true, memory_order_acquire)) { /* pairs with the release in ct_link_state_leave */
        ct_object_release(&state->object);
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "another thread uses the link state");
    }
    *out = state;
    return CUDA_SUCCESS;
}

void ct_link_state_leave(struct ct_link_state *state)
{
    atomic_store_explicit(&state->busy, false, memory_order_release);
    ct_object_release(&state->object);
}

CUresult ct_link_state_destroy(struct ct_link_state *state)
{
    return ct_object_unpublish(&state->object);
}

/* ---- inputs ---- */

/* Appends a copy to the state's texts. */
static CUresult keep(struct ct_link_state *state, const struct ct_ptx *ptx, const char *name)
{
    struct ct_ptx *kept;

    if (state->count == state->capacity) {
        const unsigned capacity = state->capacity ? state->capacity * 2 : 8;
        struct ct_ptx *texts = realloc(state->texts, capacity * sizeof *texts);

        if (!texts)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u PTX texts", capacity);
        state->texts = texts;
        state->capacity = capacity;
    }
    kept = &state->texts[state->count];
    *kept = (struct ct_ptx){.owned = strndup(ptx->text, ptx->length), .name = name ? strdup(name) : NULL};
    if (!kept->owned || (name && !kept->name)) {
        ct_ptx_finish(kept);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for PTX of %zu bytes", ptx->length);
    }
    kept->text = kept->owned;
    kept->length = strlen(kept->owned);
    state->count++;
    return CUDA_SUCCESS;
}

static CUresult add_text(struct ct_link_state *state, const struct ct_ptx *ptx, const char *name, bool on_demand)
{
    const struct ptx2spv_options options = ct_jit_compiler_options(&state->jit);
    const struct ptx2spv_input input = {ptx->text, ptx->length, name, on_demand};
    struct ct_float_environment before;
    enum ptx2spv_status status;
    CUresult r = keep(state, ptx, name);

    if (r != CUDA_SUCCESS)
        return r;
    ct_float_environment_enter(&before); /* the compiler parses decimal numbers */
    status = ptx2spv_linker_add(state->linker, &input, &options);
    ct_float_environment_restore(&before);
    return status == PTX2SPV_OK ? CUDA_SUCCESS : ct_code_link_failure(status, 0);
}

/* Adds PTX regardless of its beginning: the parser reports errors. */
static CUresult add_ptx(struct ct_link_state *state, const struct ct_link_input *input)
{
    return add_text(state, &(struct ct_ptx){.text = input->bytes, .length = input->size}, input->name, false);
}

/* Adds the PTX of an image, if it has any. *n_found: the number of texts. */
static CUresult add_image(struct ct_link_state *state, const struct ct_link_input *input, bool on_demand, unsigned *n_found)
{
    struct ct_image image;
    CUresult r = ct_image_read_part(input->bytes, input->size, &image);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < image.count && r == CUDA_SUCCESS; i++)
        r = add_text(state, &image.texts[i], image.texts[i].name ? image.texts[i].name : input->name, on_demand);
    *n_found = image.count;
    state->n_without_ptx += image.n_without_ptx;
    ct_image_finish(&image);
    return r;
}

static CUresult add_object(struct ct_link_state *state, const struct ct_link_input *input)
{
    const unsigned lacking = state->n_without_ptx;
    unsigned n_found = 0;
    CUresult r = add_image(state, input, false, &n_found);

    if (r != CUDA_SUCCESS || n_found || state->n_without_ptx == lacking)
        return r; /* an object file with only host code adds nothing */
    return ct_fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "%s has machine code for NVIDIA's GPUs and no PTX, so it cannot be linked here; rebuild it with PTX in it: "
                   "nvcc -rdc=true -gencode arch=compute_75,code=compute_75",
                   input->name ? input->name : "an input of a link");
}

/* Members are named as nvlink names them: library:member. Members that are not object files are skipped. */
static CUresult add_member(struct ct_link_state *state, const struct ct_link_input *library, const struct ct_archive_member *member)
{
    struct ct_link_input input = {.type = CU_JIT_INPUT_OBJECT, .bytes = member->bytes, .size = member->size};
    unsigned n_found;
    char *name;
    CUresult r;

    if (member->size < SELFMAG || memcmp(member->bytes, ELFMAG, SELFMAG))
        return CUDA_SUCCESS;
    if (asprintf(&name, "%s:%s", library->name ? library->name : "library", member->name) < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the name of a member");
    input.name = name;
    r = add_image(state, &input, true, &n_found);
    free(name);
    return r;
}

static CUresult add_library(struct ct_link_state *state, const struct ct_link_input *input)
{
    struct ct_archive archive;
    struct ct_archive_member member;
    bool found = true;
    CUresult r = ct_archive_open(input->bytes, input->size, &archive);

    while (r == CUDA_SUCCESS && (r = ct_archive_next(&archive, &member, &found)) == CUDA_SUCCESS && found)
        r = add_member(state, input, &member);
    return r;
}

CUresult ct_link_state_add(struct ct_link_state *state, const struct ct_link_input *input)
{
    CUresult r;

    if (state->image)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "inputs cannot be added after cuLinkComplete");
    switch ((int)input->type) {
    case CU_JIT_INPUT_PTX:
        r = add_ptx(state, input);
        break;
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
    case CU_JIT_INPUT_OBJECT:
        r = add_object(state, input);
        break;
    case CU_JIT_INPUT_LIBRARY:
        r = add_library(state, input);
        break;
    case CU_JIT_INPUT_NVVM:
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "link-time optimization (an input of type CU_JIT_INPUT_NVVM) is not supported");
        break;
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "input type %d does not exist", (int)input->type);
    }
    ct_jit_finish(&state->jit);
    return r;
}

/* ---- the image ---- */

/* Moves the texts that became a part of the module to the front. */
static unsigned select_used(struct ct_link_state *state, const struct ptx2spv_module *module)
{
    unsigned n = 0;

    for (unsigned i = 0; i < state->count; i++) {
        const struct ct_ptx text = state->texts[i];

        if (!ptx2spv_module_uses_input(module, i))
            continue;
        state->texts[i] = state->texts[n];
        state->texts[n++] = text;
    }
    return n;
}

static CUresult complete(struct ct_link_state *state)
{
    const struct ptx2spv_options options = ct_jit_compiler_options(&state->jit);
    struct ptx2spv_module *module;
    enum ptx2spv_status status = ptx2spv_linker_finish(state->linker, &options, &module);
    unsigned n;
    CUresult r;

    if (status == PTX2SPV_NOT_FOUND)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "nothing was added to the link state");
    if (status == PTX2SPV_UNDEFINED) {
        ct_code_link_failure(status, state->n_without_ptx);
        return CUDA_ERROR_INVALID_SOURCE; /* as in NVIDIA's linker */
    }
    if (status != PTX2SPV_OK)
        return ct_code_link_failure(status, 0);
    n = select_used(state, module);
    r = ct_linked_image_write(state->texts, n, state->jit.max_registers, &state->image, &state->image_size);
    if (r == CUDA_SUCCESS && state->jit.verbose)
        ct_jit_inform(&state->jit, "%u of %u inputs linked: %u kernels, %u variables", n, state->count, ptx2spv_module_kernel_count(module),
                      ptx2spv_module_variable_count(module));
    ptx2spv_module_destroy(module);
    return r;
}

CUresult ct_link_state_complete(struct ct_link_state *state, void **out, size_t *out_size)
{
    CUresult r = CUDA_SUCCESS;

    if (!state->image)
        r = complete(state);
    ct_jit_finish(&state->jit);
    if (r != CUDA_SUCCESS)
        return r;
    *out = state->image;
    if (out_size)
        *out_size = state->image_size;
    return CUDA_SUCCESS;
}
