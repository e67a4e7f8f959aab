/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an assertion contains the addresses of its texts, which are constant variables of a module. The host has the initial
 * bytes of all variables, and no program overwrites string literals, so the texts are read on the host: nothing is copied from the
 * device, where other kernels may still be running. */
#include "assertion.h"

#include "core/base/log.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "print"

/* Part of a text that need not end with a NUL. */
struct text {
    const char *at;
    int length;
};

/* Returns the initial bytes of a variable of the context's modules at an address; "" if there is none. Valid while the context is
 * locked. */
static struct text text_at_locked(const struct ct_context *context, uint64_t address)
{
    for (const struct ct_module *module = context->modules; module; module = module->next_in_context) {
        const uint64_t offset = address - module->image_address;
        const struct ptx2spv_piece *piece = ptx2spv_image_piece(ptx2spv_module_image(module->ptx), offset);

        if (module->image_address && address >= module->image_address && piece) {
            const char *bytes = (const char *)piece->bytes + (offset - piece->offset);
            const uint64_t size = piece->size_bytes - (offset - piece->offset);

            return (struct text){bytes, (int)strnlen(bytes, size < INT32_MAX ? (size_t)size : INT32_MAX)};
        }
    }
    return (struct text){"", 0};
}

/* The format of NVIDIA's driver (580, CUDA 13.0). The caller frees the line; NULL: out of memory. */
static char *line_or_null(struct ct_context *context, const struct ptx2spv_assertion *a)
{
    struct text message, file, function;
    char *line;
    int n;

    ct_mutex_lock(&context->lock);
    message = text_at_locked(context, a->message);
    file = text_at_locked(context, a->file);
    function = text_at_locked(context, a->function);
    n = asprintf(&line, "%.*s:%u: %.*s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%.*s` failed.\n", file.length, file.at,
                 (unsigned)a->line, function.length, function.at, a->block.x, a->block.y, a->block.z, a->thread.x, a->thread.y, a->thread.z,
                 message.length, message.at);
    ct_mutex_unlock(&context->lock);
    return n < 0 ? NULL : line;
}

void ct_assertions_add(struct ct_assertions *list, const uint64_t *words, unsigned n)
{
    struct ptx2spv_assertion *items;

    if (n != sizeof *items / sizeof *words)
        return; /* the record was overwritten while it was read */
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;

        if (!(items = realloc(list->items, capacity * sizeof *items)))
            return;
        list->items = items;
        list->capacity = capacity;
    }
    memcpy(&list->items[list->count++], words, sizeof *items);
}

void ct_assertions_print(struct ct_assertions *list, struct ct_context *context, FILE *to)
{
    for (size_t i = 0; i < list->count; i++) {
        char *line = line_or_null(context, &list->items[i]);

        if (line)
            fputs(line, to);
        free(line);
    }
    free(list->items);
    *list = (struct ct_assertions){0};
}
