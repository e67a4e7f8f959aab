/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries built by hand, byte for byte as nvcc writes them: the choice of the PTX, decompression, and robustness against damaged
 * files. */
#include "core/code/image.h"
#include "core/code/linked_image.h"
#include "core/base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <elf.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define CAPABILITY 75

/* A growing array of bytes; the block has exactly their size, so that a sanitizer detects accesses beyond the end. */
struct bytes {
    unsigned char *at;
    size_t size;
};

static void put(struct bytes *bytes, const void *more, size_t size)
{
    bytes->at = realloc(bytes->at, bytes->size + size);
    assert_non_null(bytes->at);
    memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
}

static void put_number(struct bytes *bytes, uint64_t value, unsigned size)
{
    unsigned char little[8];

    for (unsigned i = 0; i < size; i++)
        little[i] = (unsigned char)(value >> 8 * i);
    put(bytes, little, size);
}

enum packing { RAW, LZ4, ZSTD };
enum { PTX = 1, CUBIN = 2, LTO = 8 };
#define ONE_ARCH 0x100000u
#define WITH_OPTIONS 0x8000000000000000u /* not a flag of the format: a record of options for NVIDIA's assembler follows the strings */

struct entry {
    unsigned kind, sm;
    uint64_t flags;
    enum packing packing;
    const char *text;
};

static size_t pack(const struct entry *entry, char *out, size_t capacity)
{
    size_t raw = strlen(entry->text) + 1;

    if (entry->packing == LZ4)
        return (size_t)LZ4_compress_default(entry->text, out, (int)raw, (int)capacity);
    if (entry->packing == ZSTD)
        return ZSTD_compress(out, capacity, entry->text, raw, 3);
    memcpy(out, entry->text, raw);
    return raw;
}

static void put_entry(struct bytes *bytes, const struct entry *entry)
{
    static const uint64_t flags[] = {[RAW] = 0, [LZ4] = 0x2000, [ZSTD] = 0x8000};
    char payload[4096] = {0};
    size_t size = pack(entry, payload, sizeof payload), padded = (size + 7) / 8 * 8;
    bool packed = entry->packing != RAW;
    bool with_options = entry->flags & WITH_OPTIONS;

    put_number(bytes, entry->kind, 2);
    put_number(bytes, 0x0101, 2);
    put_number(bytes, with_options ? 104 : 72, 4); /* the header, with 8 bytes of strings; 32 for options */
    put_number(bytes, padded, 8);
    put_number(bytes, packed ? size : 0, 4);
    put_number(bytes, with_options ? 72 : 0, 4);
    put_number(bytes, 0, 2);
    put_number(bytes, 9, 2);
    put_number(bytes, entry->sm, 4);
    put_number(bytes, 64, 4);
    put_number(bytes, 4, 4);
    put_number(bytes, 0x11 | (entry->flags & ~WITH_OPTIONS) | flags[entry->packing], 8);
    put_number(bytes, 0, 8);
    put_number(bytes, packed ? strlen(entry->text) + 1 : 0, 8);
    put(bytes, "a.cu\0\0\0", 8);
    if (with_options) { /* the offset of their text, its length, and the text */
        put_number(bytes, 80, 4);
        put_number(bytes, 22, 4);
        put(bytes, "-O1  -maxrregcount=32 \0", 24);
    }
    put(bytes, payload, padded);
}

static struct bytes make(const struct entry *entries, unsigned count)
{
    struct bytes body = {0}, whole = {0};

    for (unsigned i = 0; i < count; i++)
        put_entry(&body, &entries[i]);
    put_number(&whole, 0xba55ed50, 4);
    put_number(&whole, 1, 2);
    put_number(&whole, 16, 2);
    put_number(&whole, body.size, 8);
    if (body.size)
        put(&whole, body.at, body.size);
    free(body.at);
    return whole;
}

#define TEXT_OF(sm) "\n\n.version 9.0\n.target sm_" #sm "\n.address_size 64\n.visible .entry k()\n{ ret; }\n"

static const struct {
    const char *name;
    unsigned count;
    struct entry entries[4];
    int best; /* -1: none */
} choices[] = {
    {"the only one", 1, {{PTX, 75, 0, RAW, TEXT_OF(75)}}, 0},
    {"the newest that is not too new",
     4,
     {{PTX, 50, 0, RAW, TEXT_OF(50)}, {PTX, 75, 0, RAW, TEXT_OF(75)}, {PTX, 70, 0, RAW, TEXT_OF(70)}, {PTX, 80, 0, RAW, TEXT_OF(80)}},
     1},
    {"the oldest of those that are newer",
     3,
     {{PTX, 100, 0, RAW, TEXT_OF(100)}, {PTX, 80, 0, RAW, TEXT_OF(80)}, {PTX, 90, 0, RAW, TEXT_OF(90)}},
     1},
    {"rather not for one architecture", 2, {{PTX, 75, ONE_ARCH, RAW, TEXT_OF(75)}, {PTX, 60, 0, RAW, TEXT_OF(60)}}, 1},
    {"rather newer than for one architecture", 2, {{PTX, 90, ONE_ARCH, RAW, TEXT_OF(90)}, {PTX, 100, 0, RAW, TEXT_OF(100)}}, 1},
    {"machine code beside it", 3, {{CUBIN, 75, 0, RAW, "\177ELF"}, {PTX, 52, 0, RAW, TEXT_OF(52)}, {LTO, 75, 0x10000, RAW, "?"}}, 1},
    {"LZ4", 1, {{PTX, 75, 0, LZ4, TEXT_OF(75)}}, 0},
    {"zstd", 1, {{PTX, 75, 0, ZSTD, TEXT_OF(75)}}, 0},
    {"each packed in its own way", 3, {{PTX, 61, 0, LZ4, TEXT_OF(61)}, {PTX, 75, 0, ZSTD, TEXT_OF(75)}, {PTX, 60, 0, RAW, TEXT_OF(60)}}, 1},
    {"with options for the assembler",
     3,
     {{CUBIN, 75, WITH_OPTIONS, RAW, "\177ELF"}, {PTX, 75, WITH_OPTIONS, ZSTD, TEXT_OF(75)}, {PTX, 60, WITH_OPTIONS, RAW, TEXT_OF(60)}},
     1},
    {"machine code only", 1, {{CUBIN, 75, 0, RAW, "\177ELF"}}, -1},
    {"nothing", 0, {{0}}, -1},
};

static const struct entry machine_code = {CUBIN, 75, 0, RAW, "\177ELF"};

static void the_best_ptx_is_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct bytes bytes = make(choices[i].entries, choices[i].count);
        struct ct_fatbin content;

        print_message("%s\n", choices[i].name);
        assert_int_equal(ct_fatbin_read(bytes.at, bytes.size, CAPABILITY, &content), CUDA_SUCCESS);
        assert_int_equal(content.size_bytes, bytes.size);
        if (choices[i].best < 0) {
            assert_null(content.ptx.text);
        } else {
            const char *want = choices[i].entries[choices[i].best].text;

            assert_int_equal(content.ptx.length, strlen(want));
            assert_memory_equal(content.ptx.text, want, strlen(want));
        }
        ct_ptx_finish(&content.ptx);
        free(bytes.at);
    }
}

static void the_length_is_in_the_header(void **state)
{
    struct bytes bytes = make(choices[0].entries, 1);
    struct ct_fatbin content;

    (void)state;
    assert_int_equal(ct_fatbin_read(bytes.at, CT_SIZE_UNKNOWN, CAPABILITY, &content), CUDA_SUCCESS);
    assert_int_equal(content.size_bytes, bytes.size);
    ct_ptx_finish(&content.ptx);
    free(bytes.at);
}

/* Whatever the damage, the result is INVALID_IMAGE or a text that lies within the image; a sanitizer checks the accesses. */
static CUresult read_damaged(const unsigned char *at, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1); /* allocated with the exact size */
    struct ct_fatbin content;
    CUresult r;

    assert_non_null(copy);
    memcpy(copy, at, size);
    r = ct_fatbin_read(copy, size, CAPABILITY, &content);
    if (r == CUDA_SUCCESS) {
        assert_true(content.size_bytes <= size);
        if (content.ptx.text && !content.ptx.owned)
            assert_true((const unsigned char *)content.ptx.text >= copy &&
                        (const unsigned char *)content.ptx.text + content.ptx.length <= copy + size);
        ct_ptx_finish(&content.ptx);
    } else {
        assert_true(r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_OUT_OF_MEMORY);
    }
    free(copy);
    return r;
}

static void truncated_ones_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct bytes bytes = make(choices[i].entries, choices[i].count);

        for (size_t size = 0; size < bytes.size; size++)
            assert_int_equal(read_damaged(bytes.at, size), CUDA_ERROR_INVALID_IMAGE);
        free(bytes.at);
    }
}

static void damaged_ones_do_no_harm(void **state)
{
    static const unsigned char values[] = {0x00, 0x01, 0x07, 0x7f, 0x80, 0xff};

    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct bytes bytes = make(choices[i].entries, choices[i].count);

        for (size_t at = 0; at < bytes.size; at++)
            for (size_t v = 0; v < sizeof values; v++) {
                unsigned char was = bytes.at[at];

                bytes.at[at] = values[v];
                read_damaged(bytes.at, bytes.size);
                bytes.at[at] = was;
            }
        free(bytes.at);
    }
}

/* Fields that are numbers, set to values that overflow if sums are not checked. */
static void absurd_sizes_are_refused(void **state)
{
    static const struct {
        size_t offset;
        unsigned size;
        uint64_t value;
    } fields[] = {
        {6, 2, 0xffff},           {8, 8, UINT64_MAX},       {8, 8, UINT64_MAX - 15}, {16 + 4, 4, UINT32_MAX},
        {16 + 4, 4, 63},          {16 + 8, 8, UINT64_MAX},  {16 + 8, 8, 1 << 20},    {16 + 16, 4, UINT32_MAX},
        {16 + 56, 8, UINT64_MAX}, {16 + 56, 8, UINT32_MAX}, {16 + 56, 8, 0},
    };
    const struct entry entry = {PTX, 75, 0, LZ4, TEXT_OF(75)};

    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct bytes bytes = make(&entry, 1);

        for (unsigned byte = 0; byte < fields[i].size; byte++)
            bytes.at[fields[i].offset + byte] = (unsigned char)(fields[i].value >> 8 * byte);
        print_message("field at %zu\n", fields[i].offset);
        assert_int_equal(read_damaged(bytes.at, bytes.size), CUDA_ERROR_INVALID_IMAGE);
        free(bytes.at);
    }
}

/* ---- images ---- */

static void expect_texts(const void *bytes, size_t size, unsigned count, const char *const *texts)
{
    struct ct_image image;

    assert_int_equal(ct_image_read(bytes, size, &image), CUDA_SUCCESS);
    assert_int_equal(image.count, count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(image.texts[i].length, strlen(texts[i]));
        assert_memory_equal(image.texts[i].text, texts[i], strlen(texts[i]));
    }
    ct_image_finish(&image);
}

static void expect_refusal(const void *bytes, size_t size, CUresult code)
{
    struct ct_image image;

    assert_int_equal(ct_image_read(bytes, size, &image), code);
}

struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
};

static void wrappers_lead_to_fat_binaries(void **state)
{
    struct bytes first = make(choices[6].entries, 1), second = make(choices[7].entries, 1), cubin = make(&machine_code, 1),
                 empty = make(NULL, 0);
    const void *both[] = {first.at, cubin.at, second.at, NULL}, *none[] = {cubin.at, NULL};
    const char *const texts[] = {TEXT_OF(75), TEXT_OF(75)};
    struct wrapper wrapper = {0x466243b1, 1, first.at, NULL};

    (void)state;
    expect_texts(&wrapper, CT_SIZE_UNKNOWN, 1, texts);
    wrapper = (struct wrapper){0x466243b1, 2, empty.at, both};
    expect_texts(&wrapper, CT_SIZE_UNKNOWN, 2, texts);
    wrapper = (struct wrapper){0x466243b1, 2, cubin.at, none};
    expect_refusal(&wrapper, CT_SIZE_UNKNOWN, CUDA_ERROR_NO_BINARY_FOR_GPU);
    wrapper = (struct wrapper){0x466243b1, 3, first.at, NULL};
    expect_refusal(&wrapper, CT_SIZE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE);
    wrapper = (struct wrapper){0x466243b1, 1, first.at, NULL};
    expect_refusal(&wrapper, sizeof wrapper, CUDA_ERROR_INVALID_IMAGE); /* in a file its pointers are meaningless */
    free(first.at);
    free(second.at);
    free(cubin.at);
    free(empty.at);
}

/* A host file with one section of the name, made of the bytes. */
static struct bytes make_elf(const char *name, const struct bytes *content, unsigned machine)
{
    Elf64_Ehdr header = {
        .e_ident = ELFMAG, .e_machine = (Elf64_Half)machine, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2};
    Elf64_Shdr sections[3] = {{0}};
    struct bytes out = {0};

    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_shoff = sizeof header;
    sections[1] =
        (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = sizeof header + sizeof sections, .sh_size = content->size};
    sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = sections[1].sh_offset + content->size, .sh_size = strlen(name) + 2};
    put(&out, &header, sizeof header);
    put(&out, sections, sizeof sections);
    put(&out, content->at, content->size);
    put(&out, "", 1);
    put(&out, name, strlen(name) + 1);
    return out;
}

static void host_files_are_searched(void **state)
{
    static const char *const names[] = {".nv_fatbin", "__nv_relfatbin"};
    const char *const texts[] = {TEXT_OF(75), TEXT_OF(75)};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bytes content = make(choices[6].entries, 1), second = make(choices[7].entries, 1), elf;

        put(&content, "\0\0\0\0\0\0\0", 8); /* the linker pads between two of them */
        put(&content, second.at, second.size);
        elf = make_elf(names[i], &content, EM_X86_64);
        expect_texts(elf.at, elf.size, 2, texts);
        for (size_t size = 1; size < elf.size; size += 7) { /* never a crash; the names of sections are at the end */
            unsigned char *copy = malloc(size);

            assert_non_null(copy);
            memcpy(copy, elf.at, size);
            expect_refusal(copy, size, CUDA_ERROR_INVALID_IMAGE);
            free(copy);
        }
        free(content.at);
        free(second.at);
        free(elf.at);
    }
}

static void what_has_no_ptx_is_refused(void **state)
{
    struct bytes cubin = make(&machine_code, 1), other = make_elf(".text", &cubin, EM_X86_64), code = make_elf(".text", &cubin, 190);

    (void)state;
    expect_refusal(cubin.at, cubin.size, CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect_refusal(other.at, other.size, CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect_refusal(code.at, code.size, CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect_refusal(code.at, CT_SIZE_UNKNOWN, CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect_refusal("hello", CT_SIZE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE);
    expect_refusal("", CT_SIZE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE);
    expect_refusal("", 0, CUDA_ERROR_INVALID_IMAGE);
    expect_refusal("\1", CT_SIZE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE);
    expect_refusal("// .version 1.0\n/* .version 2.0", CT_SIZE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE);
    free(cubin.at);
    free(other.at);
    free(code.at);
}

/* An image as cuLinkComplete makes it: with its size, without it, and truncated anywhere. */
static void linked_images(void **state)
{
    static const char *const texts[] = {TEXT_OF(75), TEXT_OF(80)};
    char name[] = "a file";
    const struct ct_ptx ptx[] = {{.text = texts[0], .length = strlen(texts[0]), .name = name},
                                 {.text = texts[1], .length = strlen(texts[1])}};
    struct ct_image image;
    unsigned char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(ct_linked_image_write(ptx, 2, 40, &bytes, &size), CUDA_SUCCESS);
    expect_texts(bytes, size, 2, texts);
    expect_texts(bytes, CT_SIZE_UNKNOWN, 2, texts);
    assert_int_equal(ct_image_read(bytes, size, &image), CUDA_SUCCESS);
    assert_string_equal(image.texts[0].name, "a file");
    assert_null(image.texts[1].name);
    assert_int_equal(image.max_registers, 40);
    ct_image_finish(&image);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *part = malloc(cut ? cut : 1); /* allocated with the exact size, so that a sanitizer detects accesses beyond it */

        assert_non_null(part);
        memcpy(part, bytes, cut);
        expect_refusal(part, cut, CUDA_ERROR_INVALID_IMAGE);
        free(part);
    }
    free(bytes);
}

static void text_is_text(void **state)
{
    const char *const texts[] = {TEXT_OF(75)}, *const commented[] = {"// c\n /* d */ .version 7.0"};

    (void)state;
    expect_texts(texts[0], CT_SIZE_UNKNOWN, 1, texts);
    expect_texts(texts[0], strlen(texts[0]), 1, texts);
    expect_texts(commented[0], CT_SIZE_UNKNOWN, 1, commented);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_ptx_is_chosen),
        cmocka_unit_test(the_length_is_in_the_header),
        cmocka_unit_test(truncated_ones_are_refused),
        cmocka_unit_test(damaged_ones_do_no_harm),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(wrappers_lead_to_fat_binaries),
        cmocka_unit_test(host_files_are_searched),
        cmocka_unit_test(what_has_no_ptx_is_refused),
        cmocka_unit_test(linked_images),
        cmocka_unit_test(text_is_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
