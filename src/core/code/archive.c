/* SPDX-License-Identifier: Apache-2.0 */
/* Archives (ar(5) of System V and GNU, and BSD's long names): a magic line, then members, each after a text header. */
#include "archive.h"

#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "archive"

static const char magic[] = "!<arch>\n", thin_magic[] = "!<thin>\n";
#define MAGIC_BYTES 8

/* Numbers are decimal and padded with blanks. */
struct header {
    char name[16], date[12], user[6], group[6], mode[8], size[10], end[2];
};
_Static_assert(sizeof(struct header) == 60, "the layout that ar writes");

CUresult ct_archive_open(const void *bytes, size_t size, struct ct_archive *out)
{
    if (size >= MAGIC_BYTES && !memcmp(bytes, thin_magic, MAGIC_BYTES))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "thin archives, whose members are in other files, are not supported");
    if (size < MAGIC_BYTES || memcmp(bytes, magic, MAGIC_BYTES))
        return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the library is not an archive");
    *out = (struct ct_archive){.bytes = bytes, .size = size, .at = MAGIC_BYTES};
    return CUDA_SUCCESS;
}

/* Reads a decimal number of at most 10 digits up to the first character that is not a digit. */
static size_t read_number(const char *text, size_t length)
{
    size_t value = 0;

    for (size_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
        value = value * 10 + (size_t)(text[i] - '0');
    return value;
}

static void set_name(struct ct_archive_member *member, const char *name, size_t length)
{
    if (length >= sizeof member->name)
        length = sizeof member->name - 1;
    memcpy(member->name, name, length);
    member->name[length] = 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* GNU's long names: "name/
 * " at an offset in the table of names. */
static void set_long_name(const struct ct_archive *archive, size_t offset, struct ct_archive_member *member)
{
    const char *name = offset < archive->names_size ? archive->names + offset : "";
    const size_t left = offset < archive->names_size ? archive->names_size - offset : 0;
    const char *end = left ? memchr(name, '\n', left) : NULL;
    size_t length = end ? (size_t)(end - name) : left;

    if (length && name[length - 1] == '/')
        length--;
    set_name(member, name, length);
}

/* BSD's long names: the name precedes the bytes. False: it is longer than the member. */
static bool take_name(size_t length, struct ct_archive_member *member)
{
    if (length > member->size)
        return false;
    set_name(member, member->bytes, strnlen(member->bytes, length));
    member->bytes += length;
    member->size -= length;
    return true;
}

static void set_short_name(const struct header *header, struct ct_archive_member *member)
{
    size_t length = sizeof header->name;

    while (length && header->name[length - 1] == ' ')
        length--;
    if (length && header->name[length - 1] == '/')
        length--;
    set_name(member, header->name, length);
}

enum meaning { IS_FILE, IS_TABLE, IS_DAMAGED };

/* Determines the kind and the name of a member. */
static enum meaning classify(struct ct_archive *archive, const struct header *header, struct ct_archive_member *member)
{
    if (!memcmp(header->name, "// ", 3)) {
        archive->names = member->bytes;
        archive->names_size = member->size;
        return IS_TABLE;
    }
    if (!memcmp(header->name, "/ ", 2) || !memcmp(header->name, "/SYM64/", 7) || !memcmp(header->name, "__.SYMDEF", 9))
        return IS_TABLE;
    if (header->name[0] == '/' && is_digit(header->name[1]))
        set_long_name(archive, read_number(header->name + 1, sizeof header->name - 1), member);
    else if (memcmp(header->name, "#1/", 3))
        set_short_name(header, member);
    else if (!take_name(read_number(header->name + 3, 10), member))
        return IS_DAMAGED;
    return IS_FILE;
}

CUresult ct_archive_next(struct ct_archive *archive, struct ct_archive_member *out, bool *found)
{
    enum meaning meaning;

    do {
        struct header header;

        *found = false;
        if (archive->at >= archive->size)
            return CUDA_SUCCESS;
        if (archive->size - archive->at < sizeof header)
            return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the archive ends inside of a header");
        memcpy(&header, archive->bytes + archive->at, sizeof header);
        archive->at += sizeof header;
        out->size = read_number(header.size, sizeof header.size);
        out->bytes = archive->bytes + archive->at;
        if (memcmp(header.end, "`\n", 2) || !is_digit(header.size[0]) || out->size > archive->size - archive->at)
            return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the archive is damaged at byte %zu", archive->at);
        archive->at += out->size + (out->size & 1);
        meaning = classify(archive, &header, out);
        if (meaning == IS_DAMAGED)
            return ct_fail(CUDA_ERROR_INVALID_IMAGE, "the archive is damaged at byte %zu", archive->at);
    } while (meaning == IS_TABLE);
    *found = true;
    return CUDA_SUCCESS;
}
