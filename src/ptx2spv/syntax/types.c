/* SPDX-License-Identifier: Apache-2.0 */
/* The tables types.def and opcodes.def, indexed by enumerator. */
#include "opcodes.h"

#include <string.h>

enum type_kind { KIND_NONE, KIND_B, KIND_U, KIND_S, KIND_F, KIND_P };

static const struct {
    const char *name;
    uint8_t bits;
    uint8_t kind;
} type_infos[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"none", 0, KIND_NONE},
#define PTX_TYPE(id, spelling, bits, kind) [PTX_##id] = {spelling, bits, KIND_##kind},
#include "types.def"
};

const struct ptx_opcode_info ptx_opcode_infos[PTX_OPCODE_COUNT] = {
    [PTX_OP_NONE] = {"none", "", {0, 0, 0}, 0, 0},
#define PTX_OPCODE(id, spelling, operands, types0, types1, types2, modifiers, required)                                                    \
    [PTX_OP_##id] = {spelling, operands, {types0, types1, types2}, modifiers, required},
#include "opcodes.def"
};

unsigned ptx_type_bits(enum ptx_type type)
{
    return type_infos[type].bits;
}

unsigned ptx_type_bytes(enum ptx_type type)
{
    return (ptx_type_bits(type) + 7) / 8;
}

const char *ptx_type_name(enum ptx_type type)
{
    return type_infos[type].name;
}

bool ptx_type_is_float(enum ptx_type type)
{
    return type_infos[type].kind == KIND_F;
}

bool ptx_type_is_signed(enum ptx_type type)
{
    return type_infos[type].kind == KIND_S;
}

const char *ptx_opcode_name(enum ptx_opcode opcode)
{
    return ptx_opcode_infos[opcode].name;
}

const char *ptx_unsupported_word(const struct ptx_instruction *insn, unsigned *length)
{
    const char *word = insn->text;

    for (unsigned skip = insn->mods.unsupported; skip > 1 && word; skip--) {
        word = strchr(word, '.');
        word = word ? word + 1 : NULL;
    }
    if (!word || insn->mods.unsupported <= 1) {
        *length = (unsigned)strlen(insn->text);
        return insn->text;
    }
    *length = (unsigned)strcspn(word, ".");
    return word;
}

unsigned ptx_pack_bits(const struct ptx_modifiers *mods, enum ptx_type first_type)
{
    if (!mods->mode2)
        return ptx_type_bits(first_type);
    return mods->mode2 == PTX_MODE_U4 || mods->mode2 == PTX_MODE_S4 ? 4 : 2;
}

bool ptx_pack_is_signed(const struct ptx_modifiers *mods, enum ptx_type first_type)
{
    return mods->mode2 ? mods->mode2 == PTX_MODE_S4 || mods->mode2 == PTX_MODE_S2 : ptx_type_is_signed(first_type);
}
