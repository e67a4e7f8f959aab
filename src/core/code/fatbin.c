/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries: a header, then entries back to back, each with a header with strings and a payload that may be compressed.
 * docs/interoperability.md gives the sources of these facts. Numbers are little-endian, as on every host that CUDA supports. The input
 * is untrusted: every field is checked against the available bytes before it is used. */
#include "fatbin.h"

#include "core/base/log.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define CT_CHANNEL "fatbin"
#define CT_MAX_TEXT_BYTES ((uint64_t)1 << 30) /* limit of uncompressed PTX; the largest of NVIDIA's libraries need less than a tenth */

struct container {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes; /* without the header */
};
_Static_assert(sizeof(struct container) == 16, "the layout that nvcc writes");

struct entry {
    uint16_t kind; /* enum entry_kind */
    uint16_t version;
    uint32_t header_bytes; /* including the strings after it */
    uint64_t payload_bytes;
    uint32_t compressed_bytes; /* at the start of the payload; 0: not compressed */
    uint32_t options_offset;
    uint16_t minor, major;
    uint32_t sm;
    uint32_t name_offset, name_bytes;
    uint64_t flags; /* enum entry_flag */
    uint64_t reserved;
    uint64_t raw_bytes; /* the uncompressed size of a compressed payload */
};
_Static_assert(sizeof(struct entry) == 64, "the layout that nvcc writes");

enum entry_kind { KIND_PTX = 1, KIND_CUBIN = 2 };

enum entry_flag {
    FLAG_64_BIT = 0x1,
    FLAG_LINUX = 0x10,
    FLAG_LZ4 = 0x2000,           /* one block, without a frame */
    FLAG_ZSTD = 0x8000,          /* one frame */
    FLAG_THIS_ARCH = 0x100000,   /* sm_90a: only for this architecture, not for later ones */
    FLAG_THIS_FAMILY = 0x200000, /* sm_100f: only for this family of architectures */
};

/* An entry of the container. */
struct found {
    struct entry entry;
    const unsigned char *payload;
};

static CUresult read_container(const void *bytes, size_t size, struct container *out)
{
    if (size < sizeof *out)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "a fat binary of %zu bytes is too short", size);
    memcpy(out, bytes, sizeof *out);
    if (out->magic != CT_FATBIN_MAGIC || out->version != 1 || out->header_bytes < sizeof *out)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE,
                       "a fat binary with magic number 0x%08x, version %u, and a header of %u bytes is not supported", out->magic,
                       out->version, out->header_bytes);
    if (out->header_bytes > size || out->payload_bytes > size - out->header_bytes)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "a fat binary of %llu bytes exceeds the image of %zu",
                       (unsigned long long)out->payload_bytes, size);
    return CUDA_SUCCESS;
}

/* Reads the entry at the start of `left` bytes. */
static CUresult read_entry(const unsigned char *bytes, uint64_t left, struct found *out)
{
    struct entry *entry = &out->entry;

    if (left < sizeof *entry)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "an entry of a fat binary does not fit into %llu bytes", (unsigned long long)left);
    memcpy(entry, bytes, sizeof *entry);
    if (entry->header_bytes < sizeof *entry || entry->header_bytes > left || entry->payload_bytes > left - entry->header_bytes)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "an entry of a fat binary with %u and %llu bytes does not fit into %llu",
                       entry->header_bytes, (unsigned long long)entry->payload_bytes, (unsigned long long)left);
    if (entry->compressed_bytes > entry->payload_bytes)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "an entry of a fat binary has %u compressed bytes in a payload of %llu",
                       entry->compressed_bytes, (unsigned long long)entry->payload_bytes);
    out->payload = bytes + entry->header_bytes;
    return CUDA_SUCCESS;
}

/* How well PTX fits, best first. The compiler accepts PTX for any architecture, so no fit is an error here; but PTX for one architecture
 * only uses instructions that only this architecture has. */
enum fit { FITS, FITS_NEWER, FITS_ONE_ARCH, FITS_NOT };

static enum fit fit_of(const struct entry *entry, unsigned capability)
{
    if (entry->flags & (FLAG_THIS_ARCH | FLAG_THIS_FAMILY))
        return FITS_ONE_ARCH;
    return entry->sm <= capability ? FITS : FITS_NEWER;
}

static bool is_better(const struct entry *entry, const struct entry *than, unsigned capability)
{
    enum fit fit = fit_of(entry, capability), other = than->kind ? fit_of(than, capability) : FITS_NOT;

    if (fit != other)
        return fit < other;
    return fit == FITS ? entry->sm > than->sm : entry->sm < than->sm; /* the newest of the older ones, or the oldest of the newer ones */
}

/* Reads all entries; best->entry.kind stays 0 if there is no PTX. */
static CUresult walk(const unsigned char *bytes, uint64_t left, unsigned capability, struct ct_fatbin *content, struct found *best)
{
    while (left > 0) {
        struct found found;
        CUresult r = read_entry(bytes, left, &found);

        if (r != CUDA_SUCCESS)
            return r;
        content->n_ptx += found.entry.kind == KIND_PTX;
        content->n_cubins += found.entry.kind == KIND_CUBIN;
        content->n_others += found.entry.kind != KIND_PTX && found.entry.kind != KIND_CUBIN;
        if (found.entry.kind == KIND_PTX && is_better(&found.entry, &best->entry, capability))
            *best = found;
        bytes += found.entry.header_bytes + found.entry.payload_bytes;
        left -= found.entry.header_bytes + found.entry.payload_bytes;
    }
    return CUDA_SUCCESS;
}

/* Whether exactly `raw_bytes` were decompressed. */
static bool unpack_into(const struct found *found, char *text)
{
    const struct entry *entry = &found->entry;

    if (entry->flags & FLAG_LZ4) /* both sizes are below 2^31: see unpack */
        return LZ4_decompress_safe((const char *)found->payload, text, (int)entry->compressed_bytes, (int)entry->raw_bytes) ==
               (int)entry->raw_bytes;
    return ZSTD_decompress(text, entry->raw_bytes, found->payload, entry->compressed_bytes) == entry->raw_bytes;
}

static CUresult unpack(const struct found *found, struct ct_ptx *out)
{
    const struct entry *entry = &found->entry;
    char *text;

    if (entry->compressed_bytes > CT_MAX_TEXT_BYTES || entry->raw_bytes > CT_MAX_TEXT_BYTES)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "PTX of %llu bytes", (unsigned long long)entry->raw_bytes);
    text = malloc(entry->raw_bytes + 1);
    if (!text)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "PTX of %llu bytes", (unsigned long long)entry->raw_bytes);
    if (!unpack_into(found, text)) {
        free(text);
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "compressed PTX for sm_%u is damaged", entry->sm);
    }
    text[entry->raw_bytes] = 0;
    *out = (struct ct_ptx){.text = text, .length = strlen(text), .owned = text};
    return CUDA_SUCCESS;
}

static CUresult take(const struct found *found, struct ct_ptx *out)
{
    const struct entry *entry = &found->entry;
    const char *text = (const char *)found->payload;

    if (entry->flags & (FLAG_LZ4 | FLAG_ZSTD))
        return unpack(found, out);
    if (entry->compressed_bytes)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the compression of PTX for sm_%u is unknown (flags 0x%llx)", entry->sm,
                       (unsigned long long)entry->flags);
    *out = (struct ct_ptx){.text = text, .length = strnlen(text, entry->payload_bytes)};
    return CUDA_SUCCESS;
}

/* The name is stored after the entry's header; most entries have none. */
static CUresult take_name(const struct found *found, struct ct_ptx *out)
{
    const struct entry *entry = &found->entry;
    const char *start = (const char *)found->payload - entry->header_bytes;

    if (!entry->name_bytes)
        return CUDA_SUCCESS;
    if (entry->name_offset > entry->header_bytes || entry->name_bytes > entry->header_bytes - entry->name_offset)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "a name of %u bytes at %u exceeds the header of %u", entry->name_bytes, entry->name_offset,
                       entry->header_bytes);
    out->name = strndup(start + entry->name_offset, entry->name_bytes);
    return out->name ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the name of PTX");
}

void ct_ptx_finish(struct ct_ptx *ptx)
{
    free(ptx->owned);
    free(ptx->name);
    *ptx = (struct ct_ptx){0};
}

CUresult ct_fatbin_read(const void *bytes, size_t size, unsigned capability, struct ct_fatbin *out)
{
    struct ct_fatbin content = {0};
    struct found best = {0};
    struct container container;
    CUresult r = read_container(bytes, size, &container);

    if (r != CUDA_SUCCESS)
        return r;
    content.size_bytes = container.header_bytes + container.payload_bytes;
    r = walk((const unsigned char *)bytes + container.header_bytes, container.payload_bytes, capability, &content, &best);
    if (r == CUDA_SUCCESS && best.entry.kind)
        r = take(&best, &content.ptx);
    if (r == CUDA_SUCCESS && best.entry.kind)
        r = take_name(&best, &content.ptx);
    if (r != CUDA_SUCCESS) {
        ct_ptx_finish(&content.ptx);
        return r;
    }
    if (best.entry.kind)
        ct_log(CT_LOG_DEBUG, "chose PTX for sm_%u; the fat binary has %u PTX, %u machine code and %u other entries", best.entry.sm,
               content.n_ptx, content.n_cubins, content.n_others);
    *out = content;
    return CUDA_SUCCESS;
}

/* ---- writing ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t name_bytes(const struct ct_ptx *ptx)
{
    return ptx->name ? strlen(ptx->name) + 1 : 0;
}

size_t ct_fatbin_bytes(const struct ct_ptx *ptx)
{
    return sizeof(struct container) + sizeof(struct entry) + round_up(name_bytes(ptx)) + round_up(ptx->length + 1);
}

void ct_fatbin_write(const struct ct_ptx *ptx, unsigned char *out)
{
    const size_t size = ct_fatbin_bytes(ptx), name = name_bytes(ptx);
    const struct container container = {CT_FATBIN_MAGIC, 1, sizeof container, size - sizeof container};
    const struct entry entry = {
        .kind = KIND_PTX,
        .version = 0x0101,
        .header_bytes = (uint32_t)(sizeof entry + round_up(name)),
        .payload_bytes = round_up(ptx->length + 1),
        .name_offset = sizeof entry,
        .name_bytes = (uint32_t)name,
        .flags = FLAG_64_BIT | FLAG_LINUX,
    };

    memset(out, 0, size);
    memcpy(out, &container, sizeof container);
    memcpy(out + sizeof container, &entry, sizeof entry);
    if (name)
        memcpy(out + sizeof container + sizeof entry, ptx->name, name);
    memcpy(out + sizeof container + entry.header_bytes, ptx->text, ptx->length);
}
