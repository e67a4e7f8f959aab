/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a work-group. A pointer is a position in its storage class: for a function variable the slot, for memory the byte, for a
 * built-in variable its number and component. All threads see every store at once (there is one copy, in the order in which threads
 * run). */
#include "spirv_program.h"

#include <string.h>

/* ---- pointers ---- */

static bool chain(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const struct spirv_id *pointer = spirv_type(p, w[3]), *holds = &p->ids[pointer->element];
    uint64_t place = spirv_read(p, w[3], thread);

    for (uint32_t i = 4; i < spirv_length(w); i++) {
        const uint64_t index = spirv_read(p, w[i], thread);

        if (index >= holds->count)
            return spirv_wrong(p, "item %llu of %u", (unsigned long long)index, holds->count);
        if (spirv_op(holds->def) == SpvOpTypeStruct) {
            place += holds->offsets[index];
            holds = &p->ids[holds->def[2 + index]];
            continue;
        }
        if (pointer->storage == SpvStorageClassFunction || pointer->storage == SpvStorageClassInput)
            place += index;
        else
            place += index * (spirv_op(holds->def) == SpvOpTypeArray ? holds->array_stride : holds->bits / 8);
        holds = &p->ids[holds->element];
    }
    *spirv_part(p, w[2], 0, thread) = place;
    return true;
}

uint8_t *spirv_find_global(struct spirv_program *p, uint64_t address, uint32_t bytes)
{
    for (unsigned i = 0; i < p->run->n_ranges; i++) {
        const struct spirv_range *range = &p->run->ranges[i];

        if (address >= range->address && address - range->address <= range->size_bytes &&
            range->size_bytes - (address - range->address) >= bytes)
            return (uint8_t *)range->bytes + (address - range->address);
    }
    spirv_wrong(p, "an access of %u bytes at 0x%llx", bytes, (unsigned long long)address);
    return NULL;
}

/* The bytes to which a pointer points, except those of a function variable or a built-in. */
static uint8_t *find_bytes(struct spirv_program *p, uint32_t pointer, uint32_t bytes, unsigned thread)
{
    const uint64_t place = spirv_read(p, pointer, thread);

    switch (spirv_type(p, pointer)->storage) {
    case SpvStorageClassPhysicalStorageBuffer:
        return spirv_find_global(p, place, bytes);
    case SpvStorageClassWorkgroup:
        if (place + bytes <= p->shared_bytes)
            return p->shared + place;
        break;
    case SpvStorageClassPushConstant:
        if (place + bytes <= p->run->push_bytes)
            return (uint8_t *)(uintptr_t)p->run->push + place;
        break;
    default:
        break;
    }
    spirv_wrong(p, "an access of %u bytes at %llu of storage class %u", bytes, (unsigned long long)place, spirv_type(p, pointer)->storage);
    return NULL;
}

/* ---- loads and stores ---- */

static bool load_builtin(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const uint64_t place = spirv_read(p, w[3], thread);
    uint64_t *out = spirv_part(p, w[2], 0, thread);

    if (p->ids[w[1]].count != 1)
        return spirv_wrong(p, "a built-in vector as a whole");
    switch (place >> 8) {
    case SpvBuiltInLocalInvocationId:
        *out = place & 0xff ? 0 : thread;
        return true;
    case SpvBuiltInWorkgroupId:
        *out = 0;
        return true;
    case SpvBuiltInSubgroupLocalInvocationId:
        *out = thread % p->run->subgroup_lanes;
        return true;
    default:
        return spirv_wrong(p, "built-in %llu", (unsigned long long)place >> 8);
    }
}

static bool load(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const struct spirv_id *type = &p->ids[w[1]];
    const uint32_t storage = spirv_type(p, w[3])->storage, bytes = type->bits / 8;
    const uint8_t *from;

    if (storage == SpvStorageClassInput)
        return load_builtin(p, w, thread);
    if (storage == SpvStorageClassFunction) {
        for (unsigned i = 0; i < type->count; i++)
            *spirv_part(p, w[2], i, thread) =
                p->locals[(spirv_read(p, w[3], thread) + i) * p->run->threads + thread] & spirv_mask(type->bits);
        return true;
    }
    if (!(from = find_bytes(p, w[3], type->count * bytes, thread)))
        return false;
    for (unsigned i = 0; i < type->count; i++) {
        uint64_t value = 0;

        memcpy(&value, from + i * bytes, bytes);
        *spirv_part(p, w[2], i, thread) = value;
    }
    return true;
}

static bool store(struct spirv_program *p, const uint32_t *w, uint32_t value, unsigned thread)
{
    const struct spirv_id *type = spirv_type(p, value);
    const uint32_t storage = spirv_type(p, w[1])->storage, bytes = type->bits / 8;
    uint8_t *to;

    if (storage == SpvStorageClassFunction) {
        for (unsigned i = 0; i < type->count; i++)
            p->locals[(spirv_read(p, w[1], thread) + i) * p->run->threads + thread] = *spirv_part(p, value, i, thread);
        return true;
    }
    if (storage == SpvStorageClassPhysicalStorageBuffer && p->run->on_store) {
        p->quiet = 0;
        p->stopped |= !p->run->on_store(p->run->user, spirv_read(p, w[1], thread), spirv_read(p, value, thread));
        return true;
    }
    if (!(to = find_bytes(p, w[1], type->count * bytes, thread)))
        return false;
    for (unsigned i = 0; i < type->count; i++)
        memcpy(to + i * bytes, spirv_part(p, value, i, thread), bytes);
    return true;
}

/* ---- atomics ---- */

static bool combine(struct spirv_program *p, const uint32_t *w, uint64_t old, uint64_t value, unsigned bits, uint64_t *out)
{
    const bool is_less = spirv_signed(old, bits) < spirv_signed(value, bits);

    switch (spirv_op(w)) {
    case SpvOpAtomicExchange:
        *out = value;
        return true;
    case SpvOpAtomicIAdd:
        *out = old + value;
        return true;
    case SpvOpAtomicISub:
        *out = old - value;
        return true;
    case SpvOpAtomicSMin:
        *out = is_less ? old : value;
        return true;
    case SpvOpAtomicSMax:
        *out = is_less ? value : old;
        return true;
    case SpvOpAtomicUMin:
        *out = old < value ? old : value;
        return true;
    case SpvOpAtomicUMax:
        *out = old > value ? old : value;
        return true;
    case SpvOpAtomicAnd:
        *out = old & value;
        return true;
    case SpvOpAtomicOr:
        *out = old | value;
        return true;
    case SpvOpAtomicXor:
        *out = old ^ value;
        return true;
    default:
        return spirv_wrong(p, "atomic instruction %u", spirv_op(w));
    }
}

static bool update(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const bool is_cas = spirv_op(w) == SpvOpAtomicCompareExchange;
    const unsigned bits = p->ids[w[1]].bits;
    const uint64_t value = spirv_read(p, w[is_cas ? 7 : 6], thread);
    uint8_t *at = find_bytes(p, w[3], bits / 8, thread);
    uint64_t old = 0, next = value;

    if (!at)
        return false;
    memcpy(&old, at, bits / 8);
    *spirv_part(p, w[2], 0, thread) = old;
    if (is_cas)
        next = old == spirv_read(p, w[8], thread) ? value : old;
    else if (!combine(p, w, old, value, bits, &next))
        return false;
    memcpy(at, &next, bits / 8);
    return true;
}

bool spirv_access(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    switch (spirv_op(w)) {
    case SpvOpAccessChain:
        return chain(p, w, thread);
    case SpvOpLoad:
    case SpvOpAtomicLoad:
        return load(p, w, thread);
    case SpvOpStore:
        return store(p, w, w[2], thread);
    case SpvOpAtomicStore:
        return store(p, w, w[4], thread);
    default:
        return update(p, w, thread);
    }
}
