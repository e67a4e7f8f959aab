/* SPDX-License-Identifier: Apache-2.0 */
/* The table of opcodes.def as data. */
#ifndef PTX2SPV_OPCODES_H
#define PTX2SPV_OPCODES_H

#include "ast.h"

/* Sets of types: one bit for each type. */
#define T(type) (1u << PTX_##type)
#define T_PRED T(PRED)
#define T_B8 T(B8)
#define T_B32 T(B32)
#define T_B64 T(B64)
#define T_B128 T(B128)
#define T_U32 T(U32)
#define T_U64 T(U64)
#define T_S32 T(S32)
#define T_F32 T(F32)
#define T_F64 T(F64)
#define T_I16 (T(U16) | T(S16))
#define T_INT32 (T(U32) | T(S32))
#define T_INT64 (T(U64) | T(S64))
#define T_INT (T_I16 | T_INT32 | T_INT64)
#define T_SINT (T(S16) | T(S32) | T(S64))
#define T_INT8 (T(U8) | T(S8))
#define T_I16X2 (T(U16X2) | T(S16X2))
#define T_BITS (T(B16) | T(B32) | T(B64))
#define T_HALF (T(F16) | T(F16X2) | T(BF16) | T(BF16X2))
#define T_FLOAT (T_HALF | T_F32 | T_F64 | T(F32X2))
#define T_MEM (T_B8 | T_BITS | T_B128 | T_INT8 | T_INT | T_F32 | T_F64)
#define T_ATOM (T_BITS | T_B128 | T_INT32 | T_INT64 | T_F32 | T_F64 | T_HALF)
#define T_CVT (T_INT8 | T_INT | T_F32 | T_F64 | T_HALF | T(TF32) | T(E4M3X2) | T(E5M2X2))
#define T_OPT 0x80000000u         /* optional */
#define T_UNSUPPORTED 0x40000000u /* makes the instruction an unsupported one */
#define T_ANY 0xbfffffffu
_Static_assert(PTX_TYPE_COUNT <= 30, "the two upper bits of a type mask are flags");

/* Sets of modifier classes. */
enum ptx_modifier_class {
#define PTX_MODIFIER_CLASS(id, member) PTX_CLASS_##id,
#include "modifiers.def"
    PTX_CLASS_COUNT
};
_Static_assert(PTX_CLASS_COUNT <= 62, "a class is a bit of a 64-bit mask");
#define M(class) (UINT64_C(1) << PTX_CLASS_##class)
#define M_RND M(RND)
#define M_RND_ALL (M(RND) | M(RND_MORE))
#define M_CMP M(CMP)
#define M_OPER M(OPER)
#define M_HALF M(HALF)
#define M_SEM M(SEM)
#define M_SCOPE M(SCOPE)
#define M_SPACE M(SPACE)
#define M_VEC M(VEC)
#define M_FTZ M(FTZ)
#define M_SAT M(SAT)
#define M_APPROX M(APPROX)
#define M_FULL M(FULL)
#define M_CC M(CC)
#define M_UNI M(UNI)
#define M_TO M(TO)
#define M_SYNC M(SYNC)
#define M_NAN M(NAN)
#define M_RELU M(RELU)
#define M_SHIFTAMT M(SHIFTAMT)
#define M_NC M(NC)
#define M_SATFINITE M(SATFINITE)
#define M_HINT M(CACHE_HINT)
#define M_CACHE (M(CACHE_LOAD) | M(CACHE_STORE) | M(CACHE_LEVEL) | M(EVICT) | M(EVICT_L2) | M(FETCH_SIZE) | M_HINT) /* any */
#define M_UNSUPPORTED M(UNSUPPORTED)
#define M_WRAP M(WRAP)
#define M_ARITH (M_RND | M_FTZ | M_SAT)
#define M_MINMAX (M_FTZ | M_NAN | M(XORSIGN) | M(ABS) | M_RELU)
#define M_TESTP M(TESTP_MODE)
#define M_SHF M(DIRECTION)
#define M_PRMT M(PRMT_MODE)
#define M_SHFL M(SHFL_MODE)
#define M_VOTE M(VOTE_MODE)
#define M_BRX M(IDX)
#define M_LDST (M_SEM | M(MMIO) | M_SCOPE | M_SPACE | M_VEC | M(EVICT) | M(EVICT_L2) | M_HINT)
#define M_ATOM (M_OPER | M_SEM | M_SCOPE | M_SPACE | M_VEC | M(NOFTZ) | M_HINT | M_UNSUPPORTED)
#define M_BAR (M(BAR_WARP) | M(BAR_MODE) | M(ALIGNED) | M_SCOPE)
#define M_PACK (M(PACK) | M(PACK_TYPE))
#define M_MEMBAR (M(GL) | M_PROXY)
#define M_PROXY (M(PROXY) | M(PROXY_KIND))
#define M_COPY (M(COPY_ASYNC) | M(COPY_GROUP) | M_SPACE | M_CACHE)
#define M_POLICY (M(POLICY) | M_SPACE | M_CACHE)
#define M_MATRIX (M_LOOSE | M_WORDS | M_SYNC | M(ALIGNED) | M(SPACE) | M_OPER | M_RND | M_SATFINITE)
#define M_LOOSE (UINT64_C(1) << 63)
#define M_WORDS (UINT64_C(1) << 62) /* with M_LOOSE: `build` reads the other words */

struct ptx_opcode_info {
    const char *name;
    const char *operands; /* the pattern, see opcodes.def */
    uint32_t types[3];
    uint64_t modifiers; /* the legal classes */
    uint64_t required;  /* one of these must be present, as far as they apply to the instruction's type */
};
extern const struct ptx_opcode_info ptx_opcode_infos[PTX_OPCODE_COUNT];

/* Modifier classes that apply to floating point or to integer types only. */
#define M_FLOAT_ONLY (M_RND_ALL | M_FTZ | M_APPROX | M_FULL | M_NAN | M(XORSIGN) | M(ABS) | M_SATFINITE)
#define M_INTEGER_ONLY (M_HALF | M_CC)

/* The word that insn->mods.unsupported denotes (of "ld.async": "async"), for messages; insn->text if there is none. *length gets its
 * length. */
const char *ptx_unsupported_word(const struct ptx_instruction *insn, unsigned *length);

#endif
