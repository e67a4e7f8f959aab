/* SPDX-License-Identifier: Apache-2.0 */
/* The build ID is in a note that the dynamic linker has mapped. The one of the file that contains this code counts: libcuda.so.1, or a program
 * that has the library linked into it. */
#include "build_id.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static struct ct_bytes found;

static bool contains(const struct dl_phdr_info *file, uintptr_t address)
{
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && address - file->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static size_t aligned(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

static struct ct_bytes find_in_notes(const char *notes, size_t size, size_t align)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        size_t name_end, end;

        memcpy(&note, notes, sizeof note);
        name_end = aligned(sizeof note + note.n_namesz, align);
        end = aligned(name_end + note.n_descsz, align);
        if (name_end + note.n_descsz > size)
            break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" && !memcmp(notes + sizeof note, "GNU", sizeof "GNU"))
            return (struct ct_bytes){notes + name_end, note.n_descsz};
        if (end >= size)
            break;
        notes += end;
        size -= end;
    }
    return (struct ct_bytes){NULL, 0};
}

static int visit(struct dl_phdr_info *file, size_t size, void *user)
{
    (void)size;
    (void)user;
    if (!contains(file, (uintptr_t)&ct_build_id))
        return 0;
    for (unsigned i = 0; i < file->dlpi_phnum && !found.size; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];

        if (part->p_type == PT_NOTE)
            found = find_in_notes((const char *)(file->dlpi_addr + part->p_vaddr), part->p_memsz, part->p_align == 8 ? 8 : 4);
    }
    return 1;
}

static void find(void)
{
    dl_iterate_phdr(visit, NULL);
}

struct ct_bytes ct_build_id(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find);
    return found;
}
