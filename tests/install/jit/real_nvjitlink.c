/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in of `cuttle run` is before, for tests: a library with nvJitLink's functions. Its LTO-IR is PTX with LTO-IR's first bytes before
 * it, also in a fat binary, and it takes one such input, as NVIDIA's takes no others for -ptx. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FATBIN = 4 };
enum { SUCCESS = 0, MISSING_ARCH = 2, INVALID_INPUT = 3, INTERNAL = 6, NULL_INPUT = 10, INCORRECT_INPUT_TYPE = 12, LTO_NOT_ENABLED = 18 };
static const char magic[] = "\xed"
                            "CN\x7f";

struct link {
    bool has_lto, has_ptx, is_complete;
    char *ptx;
};

int nvJitLinkVersion(unsigned *major, unsigned *minor);
int nvJitLinkCreate(struct link **out, uint32_t count, const char **options);
int nvJitLinkDestroy(struct link **link);
int nvJitLinkAddData(struct link *link, int type, const void *data, size_t size, const char *name);
int nvJitLinkComplete(struct link *link);
int nvJitLinkGetLinkedCubinSize(struct link *link, size_t *out);
int nvJitLinkGetLinkedPtxSize(struct link *link, size_t *out);
int nvJitLinkGetLinkedPtx(struct link *link, char *out);
int nvJitLinkGetErrorLogSize(struct link *link, size_t *out);

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

int nvJitLinkCreate(struct link **out, uint32_t count, const char **options)
{
    struct link *link = calloc(1, sizeof *link);
    bool has_arch = false;

    if (!link)
        abort();
    for (uint32_t i = 0; i < count; i++) {
        has_arch |= !strncmp(options[i], "-arch=", 6);
        link->has_lto |= !strcmp(options[i], "-lto");
        link->has_ptx |= !strcmp(options[i], "-ptx");
    }
    *out = link;
    return has_arch ? SUCCESS : MISSING_ARCH;
}

int nvJitLinkDestroy(struct link **link)
{
    if (!link)
        return NULL_INPUT;
    free((*link)->ptx);
    free(*link);
    *link = NULL;
    return SUCCESS;
}

int nvJitLinkAddData(struct link *link, int type, const void *data, size_t size, const char *name)
{
    (void)name;
    if (!link || !data)
        return NULL_INPUT;
    if (type == FATBIN) {
        const char *code = memmem(data, size, magic, 4);

        size = code ? size - (size_t)(code - (const char *)data) : 0;
        data = code;
    }
    if (size < 4 || memcmp(data, magic, 4) || link->ptx)
        return INCORRECT_INPUT_TYPE;
    if (!link->has_lto)
        return LTO_NOT_ENABLED;
    link->ptx = strndup((const char *)data + 4, size - 4);
    return SUCCESS;
}

int nvJitLinkComplete(struct link *link)
{
    link->is_complete = link->ptx;
    return link->ptx ? SUCCESS : INTERNAL;
}

int nvJitLinkGetLinkedCubinSize(struct link *link, size_t *out)
{
    if (!link->is_complete || link->has_ptx)
        return INTERNAL;
    *out = sizeof "machine code";
    return SUCCESS;
}

int nvJitLinkGetLinkedPtxSize(struct link *link, size_t *out)
{
    if (!link->is_complete || !link->has_ptx)
        return INVALID_INPUT;
    *out = strlen(link->ptx) + 1;
    return SUCCESS;
}

int nvJitLinkGetLinkedPtx(struct link *link, char *out)
{
    strcpy(out, link->ptx);
    return SUCCESS;
}

int nvJitLinkGetErrorLogSize(struct link *link, size_t *out)
{
    (void)link;
    *out = 1;
    return SUCCESS;
}
