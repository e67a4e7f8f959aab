/* SPDX-License-Identifier: Apache-2.0 */
/* Images: detects the kind of an image, and finds the PTX in it. */
#include "image.h"

#include "core/device/compute_capability.h"
#include "linked_image.h"
#include "core/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "image"
#define CT_WRAPPER_MAGIC 0x466243b1u
#define CT_MAX_LINKED 65536 /* fat binaries in the list of a wrapper */

/* The struct that nvcc passes to the runtime for each source file (version 1), or for a linked set of them (version 2). */
struct wrapper {
    uint32_t magic, version;
    const void *data;         /* a fat binary; with version 2 the linked machine code, if any */
    const void *const *parts; /* version 2: the fat binaries that were linked, up to NULL */
};
_Static_assert(sizeof(struct wrapper) == 24, "the layout that nvcc writes");

static CUresult add(struct ct_image *image, struct ct_ptx ptx)
{
    if (image->count == image->capacity) {
        unsigned capacity = image->capacity ? image->capacity * 2 : 1;
        struct ct_ptx *texts = realloc(image->texts, capacity * sizeof *texts);

        if (!texts) {
            ct_ptx_finish(&ptx);
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u PTX texts", capacity);
        }
        image->texts = texts;
        image->capacity = capacity;
    }
    image->texts[image->count++] = ptx;
    return CUDA_SUCCESS;
}

void ct_image_finish(struct ct_image *image)
{
    for (unsigned i = 0; i < image->count; i++)
        ct_ptx_finish(&image->texts[i]);
    free(image->texts);
    *image = (struct ct_image){0};
}

/* Adds the PTX of one fat binary, if it has any; *out_size receives its size. */
static CUresult add_fatbin(struct ct_image *image, const void *bytes, size_t size, size_t *out_size)
{
    struct ct_fatbin content;
    CUresult r = ct_fatbin_read(bytes, size, ct_compute_capability_for_images(), &content);

    if (r != CUDA_SUCCESS)
        return r;
    *out_size = content.size_bytes;
    if (content.ptx.text)
        return add(image, content.ptx);
    image->n_without_ptx += content.n_cubins + content.n_others > 0;
    return CUDA_SUCCESS;
}

static CUresult read_fatbin(struct ct_image *image, const void *bytes, size_t size)
{
    size_t used;

    return add_fatbin(image, bytes, size, &used);
}

static CUresult read_wrapper(struct ct_image *image, const void *bytes)
{
    struct wrapper wrapper;
    CUresult r = CUDA_SUCCESS;
    size_t used;

    memcpy(&wrapper, bytes, sizeof wrapper);
    if (wrapper.version != 1 && wrapper.version != 2)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the wrapper of a fat binary has the unknown version %u", wrapper.version);
    if (wrapper.data)
        r = add_fatbin(image, wrapper.data, CT_SIZE_UNKNOWN, &used);
    if (wrapper.version != 2 || !wrapper.parts || image->count)
        return r;
    image->n_without_ptx = 0; /* the linked machine code was made from the parts, and is not another part */
    for (unsigned i = 0; r == CUDA_SUCCESS && i < CT_MAX_LINKED && wrapper.parts[i]; i++)
        r = add_fatbin(image, wrapper.parts[i], CT_SIZE_UNKNOWN, &used);
    return r;
}

/* Reads a section of fat binaries, one after the other, with zeros between them. */
static CUresult read_section(struct ct_image *image, const unsigned char *bytes, uint64_t size)
{
    CUresult r = CUDA_SUCCESS;
    uint64_t at = 0;
    size_t used = 0;

    while (r == CUDA_SUCCESS && size - at >= sizeof(uint32_t)) {
        if (!memcmp(bytes + at, "\0\0\0\0", 4)) {
            at += 4;
            continue;
        }
        r = add_fatbin(image, bytes + at, size - at, &used);
        at += used;
    }
    return r;
}

/* The sections of a host file, which have been checked to lie inside of it. */
struct sections {
    const unsigned char *file;
    uint64_t size;
    Elf64_Shdr names;
    uint64_t offset;
    unsigned count;
};

static bool is_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static Elf64_Shdr section_at(const struct sections *sections, unsigned index)
{
    Elf64_Shdr header;

    memcpy(&header, sections->file + sections->offset + index * sizeof header, sizeof header);
    return header;
}

static CUresult find_sections(const void *bytes, size_t size, struct sections *out)
{
    Elf64_Ehdr header;

    memcpy(&header, bytes, sizeof header); /* the caller has checked the size */
    *out = (struct sections){.file = bytes, .size = size, .offset = header.e_shoff, .count = header.e_shnum};
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
        !is_within(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), size))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the ELF file has no sections, or is damaged");
    out->names = section_at(out, header.e_shstrndx);
    if (!is_within(out->names.sh_offset, out->names.sh_size, size))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the section names of the ELF file lie outside of it");
    return CUDA_SUCCESS;
}

static bool section_is(const struct sections *sections, const Elf64_Shdr *header, const char *name)
{
    size_t length = strlen(name) + 1;

    return is_within(header->sh_name, length, sections->names.sh_size) &&
           !memcmp(sections->file + sections->names.sh_offset + header->sh_name, name, length);
}

/* Adds the contents of all sections with that name. */
static CUresult read_sections(struct ct_image *image, const struct sections *sections, const char *name)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < sections->count && r == CUDA_SUCCESS; i++) {
        Elf64_Shdr header = section_at(sections, i);

        if (!section_is(sections, &header, name) || header.sh_type == SHT_NOBITS)
            continue;
        if (!is_within(header.sh_offset, header.sh_size, sections->size))
            return ct_fail(CUDA_ERROR_INVALID_IMAGE, "section %s of the ELF file lies outside of it", name);
        r = read_section(image, sections->file + header.sh_offset, header.sh_size);
    }
    return r;
}

static bool has_section(const struct sections *sections, const char *name)
{
    for (unsigned i = 0; i < sections->count; i++) {
        const Elf64_Shdr header = section_at(sections, i);

        if (section_is(sections, &header, name))
            return true;
    }
    return false;
}

static CUresult read_linked(struct ct_image *image, const void *bytes, size_t size)
{
    struct sections sections;
    Elf64_Ehdr header;
    CUresult r;

    memcpy(&header, bytes, sizeof header);
    if (size == CT_SIZE_UNKNOWN)
        size = ct_linked_image_bytes(&header);
    if (size < sizeof header)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the header of the linked image is damaged");
    image->max_registers = ct_linked_image_max_registers(&header);
    r = find_sections(bytes, size, &sections);
    return r == CUDA_SUCCESS ? read_sections(image, &sections, CT_LINKED_SECTION) : r;
}

static CUresult read_elf(struct ct_image *image, const void *bytes, size_t size)
{
    struct sections sections;
    Elf64_Ehdr header;
    CUresult r;

    if (size < sizeof header)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "an ELF file of %zu bytes is too short", size);
    memcpy(&header, bytes, sizeof header);
    if (ct_linked_image_is(&header))
        return read_linked(image, bytes, size);
    if (header.e_machine == CT_EM_CUDA) {
        image->n_without_ptx++;
        return CUDA_SUCCESS;
    }
    if (size == CT_SIZE_UNKNOWN || header.e_ident[EI_CLASS] != ELFCLASS64)
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the ELF image is for machine %u", header.e_machine);
    r = find_sections(bytes, size, &sections);
    if (r == CUDA_SUCCESS)
        r = read_sections(image, &sections, ".nv_fatbin");
    if (r != CUDA_SUCCESS || !has_section(&sections, "__nv_relfatbin"))
        return r;
    image->n_without_ptx = 0;                                 /* the machine code was linked from the parts that follow */
    return read_sections(image, &sections, "__nv_relfatbin"); /* written by nvcc -rdc=true */
}

/* Skips white space and comments. */
static const char *skip_to_word(const char *text, const char *end)
{
    for (;;) {
        const char *next;

        while (text < end && strchr(" \t\r\n\f\v", *text))
            text++;
        if (end - text < 2 || text[0] != '/' || (text[1] != '/' && text[1] != '*'))
            return text;
        if (text[1] == '/')
            next = memchr(text, '\n', (size_t)(end - text));
        else
            next = (next = memmem(text + 2, (size_t)(end - text) - 2, "*/", 2)) ? next + 2 : NULL;
        text = next ? next : end;
    }
}

static CUresult read_text(struct ct_image *image, const char *text, size_t size)
{
    static const char version[] = ".version";
    size_t length = size == CT_SIZE_UNKNOWN ? 0 : strnlen(text, size), left;
    unsigned char first = size ? (unsigned char)*text : 0;
    const char *word;

    if (first && first != '\t' && first != '\n' && first != '\r' && (first < ' ' || first > '~'))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the image is not PTX text: its first byte is 0x%02x", first);
    if (size == CT_SIZE_UNKNOWN)
        length = strlen(text);
    word = skip_to_word(text, text + length);
    left = length - (size_t)(word - text);
    if (left < sizeof version - 1 || memcmp(word, version, sizeof version - 1))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the image is not PTX text: it begins with \"%.*s\", not .version",
                       (int)(left < 20 ? left : 20), word);
    return add(image, (struct ct_ptx){.text = text, .length = length});
}

static CUresult read_any(struct ct_image *image, const void *bytes, size_t size)
{
    const unsigned char *first = bytes;
    uint32_t magic = 0;

    /* no byte after the NUL of a text may be read */
    for (unsigned i = 0; i < sizeof magic && i < size && (i == 0 || first[i - 1]); i++)
        magic |= (uint32_t)first[i] << 8 * i;
    if (magic == CT_WRAPPER_MAGIC && size == CT_SIZE_UNKNOWN) /* it contains pointers, so it cannot be in a file */
        return read_wrapper(image, bytes);
    if (magic == CT_FATBIN_MAGIC)
        return read_fatbin(image, bytes, size);
    if (!memcmp(&magic, ELFMAG, sizeof magic))
        return read_elf(image, bytes, size);
    return read_text(image, bytes, size);
}

CUresult ct_image_read_part(const void *bytes, size_t size, struct ct_image *out)
{
    struct ct_image image = {0};
    CUresult r = read_any(&image, bytes, size);

    if (r == CUDA_SUCCESS)
        *out = image;
    else
        ct_image_finish(&image);
    return r;
}

CUresult ct_image_read(const void *bytes, size_t size, struct ct_image *out)
{
    struct ct_image image;
    CUresult r = ct_image_read_part(bytes, size, &image);

    if (r != CUDA_SUCCESS)
        return r;
    if (image.count == 0) {
        ct_image_finish(&image);
        return ct_fail(
            CUDA_ERROR_NO_BINARY_FOR_GPU,
            "the image has no PTX, but at most machine code for NVIDIA's GPUs, which cannot run here; rebuild it with PTX in it: "
            "nvcc -gencode arch=compute_75,code=compute_75");
    }
    *out = image;
    return CUDA_SUCCESS;
}

static CUresult read_all(FILE *file, const char *name, char **out, size_t *out_size)
{
    size_t size = 0, capacity = 1 << 16;
    char *bytes = NULL;

    do {
        char *grown;

        capacity *= 2;
        grown = realloc(bytes, capacity);
        if (!grown) {
            free(bytes);
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of %s", capacity, name);
        }
        bytes = grown;
        size += fread(bytes + size, 1, capacity - size - 1, file);
    } while (size == capacity - 1);
    if (ferror(file)) {
        free(bytes);
        return ct_fail(CUDA_ERROR_FILE_NOT_FOUND, "cannot read %s: %s", name, strerror(errno)); /* a directory */
    }
    bytes[size] = 0;
    *out = bytes;
    *out_size = size;
    return CUDA_SUCCESS;
}

CUresult ct_image_read_file(const char *name, char **out, size_t *out_size)
{
    FILE *file = fopen(name, "rb");
    CUresult r;

    if (!file)
        return ct_fail(CUDA_ERROR_FILE_NOT_FOUND, "cannot open %s: %s", name, strerror(errno));
    r = read_all(file, name, out, out_size);
    fclose(file);
    return r;
}
