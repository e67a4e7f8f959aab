/* SPDX-License-Identifier: Apache-2.0 */
/* build: atom, red (PTX ISA, "Parallel Synchronization and Communication Instructions").
 *
 * Operations that no device has (inc, dec, packed and 16-bit types) and those that the target lacks (float addition) become a
 * compare-and-swap loop here, where a loop needs no repair of SSA form. For a generic address an operation counts as available only if
 * both spaces have it. */
#include "build_address.h"
#include "build_arithmetic.h"

#define MAX_VALUES 2
#define MAX_ELEMENTS 8 /* elements of a vector */

struct atomic {
    struct ct_address address;
    enum ptx_type type;
    enum ptx_operation operation;
    ct_value values[MAX_VALUES];
    unsigned n_values;
};

static bool is_half(enum ptx_type type)
{
    return ptx_type_bits(type) == 16;
}

/* ---- capabilities of the target ---- */

static bool in_both(enum ct_space space, bool global, bool shared)
{
    return space == CT_SPACE_GLOBAL ? global : space == CT_SPACE_SHARED ? shared : global && shared;
}

static bool target_has_add(const struct ct_build *b, enum ptx_type type, enum ct_space space)
{
    const struct ptx2spv_target *target = b->fn->target;
    const bool views = ct_target_has_views(target);

    if (type == PTX_F32)
        return in_both(space, target->atomic_float32_add_global, views && target->atomic_float32_add_shared);
    if (type == PTX_F64)
        return in_both(space, target->atomic_float64_add_global, views && target->atomic_float64_add_shared);
    return !ptx_type_is_float(type);
}

static bool needs_loop(const struct ct_build *b, const struct atomic *atomic)
{
    if (atomic->operation == PTX_INC || atomic->operation == PTX_DEC || is_half(atomic->type))
        return true;
    return ptx_type_is_float(atomic->type) && !(atomic->operation == PTX_ADD && target_has_add(b, atomic->type, atomic->address.space));
}

/* ---- one instruction ---- */

static struct ct_insn *emit_access(struct ct_build *b, const struct ct_address *address, enum ct_op op, enum ptx_type type,
                                   unsigned results, unsigned operands)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, results, operands);

    ct_build_access(b, insn, address, ptx_type_bits(type) / 8);
    insn->semantics = PTX_RELAXED;
    if (results)
        insn->results[0] = ct_value_create(b->fn, ct_width_of(type));
    return insn;
}

static ct_value build_atomic_instruction(struct ct_build *b, const struct atomic *atomic, bool wanted)
{
    struct ct_insn *insn = emit_access(b, &atomic->address, CT_OP_ATOM, atomic->type, wanted, atomic->n_values + 1);

    insn->operation = (uint8_t)atomic->operation;
    for (unsigned i = 0; i < atomic->n_values; i++)
        insn->operands[i + 1] = atomic->values[i];
    return wanted ? insn->results[0] : CT_NO_VALUE;
}

/* ---- loops ---- */

static enum ptx_type element_of(enum ptx_type type)
{
    return type == PTX_F16X2 ? PTX_F16 : type == PTX_BF16X2 ? PTX_BF16 : type;
}

/* Applies an operation to a value; for a packed type, to each half. */
static ct_value combine(struct ct_build *b, enum ct_op op, enum ptx_type type, ct_value x, ct_value y)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type element = element_of(type);
    ct_value xs[2], ys[2];

    if (element == type)
        return ct_op2(at, op, type, x, y);
    ct_unpack2(at, x, &xs[0], &xs[1]);
    ct_unpack2(at, y, &ys[0], &ys[1]);
    for (int i = 0; i < 2; i++)
        xs[i] = ct_op2(at, op, element, xs[i], ys[i]);
    return ct_pack2(at, xs[0], xs[1]);
}

/* inc: old >= limit ? 0 : old + 1. dec: old == 0 || old > limit ? limit : old - 1; the condition is equivalent to old - 1 >= limit, as 0
 * - 1 wraps around. */
static ct_value inc_dec(struct ct_build *b, bool up, ct_value old, ct_value limit)
{
    struct ct_cursor *at = &b->at;
    const ct_value next = ct_add_imm(at, old, up ? 1 : UINT64_MAX);
    const ct_value turn = ct_icmp(at, PTX_U32, PTX_GE, up ? old : next, limit);

    return ct_select(at, turn, up ? ct_const32(at, 0) : limit, next);
}

static ct_value next_value(struct ct_build *b, const struct atomic *atomic, ct_value old)
{
    const ct_value x = atomic->values[0];

    switch (atomic->operation) {
    case PTX_INC:
    case PTX_DEC:
        return inc_dec(b, atomic->operation == PTX_INC, old, x);
    case PTX_ADD:
        return combine(b, ptx_type_is_float(atomic->type) ? CT_OP_FADD : CT_OP_ADD, atomic->type, old, x);
    case PTX_EXCH:
        return x;
    case PTX_CAS:
        return ct_select(&b->at, ct_icmp(&b->at, ct_bits_type(ct_width_at(&b->at, x)), PTX_EQ, old, x), atomic->values[1], old);
    case PTX_MIN:
    case PTX_MAX:
        return combine(b, atomic->operation == PTX_MIN ? CT_OP_FMIN : CT_OP_FMAX, atomic->type, old, x);
    case PTX_OPER_NONE:
    case PTX_AND:
    case PTX_OR:
    case PTX_XOR:
    case PTX_POPC:
        break;
    }
    ct_build_unsupported(b, "this operation on this type");
    return old;
}

/* The 32-bit word that contains a 16-bit object: its address, and the position of the object in it. */
struct half_word {
    struct ct_address word;
    ct_value first_bit;
};

static struct half_word containing_word(struct ct_build *b, const struct ct_address *half)
{
    struct ct_cursor *at = &b->at;
    const ct_value address = ct_add_imm(at, half->base, (uint64_t)half->offset);
    struct half_word around = {.word = *half};

    around.word.offset = 0;
    around.word.base = ct_and_imm(at, address, ~UINT64_C(3));
    around.first_bit = ct_shl_imm(at, ct_and_imm(at, ct_low32(at, address), 2), 3);
    return around;
}

static ct_value half_of(struct ct_build *b, ct_value word, ct_value first_bit)
{
    return ct_resize(&b->at, ct_op2(&b->at, CT_OP_SHR, PTX_U32, word, first_bit), PTX_U32, CT_W_16);
}

static ct_value with_half(struct ct_build *b, ct_value word, ct_value first_bit, ct_value half)
{
    struct ct_cursor *at = &b->at;
    const ct_value mask = ct_bits2(at, CT_OP_SHL, ct_const32(at, 0xffff), first_bit);
    const ct_value placed = ct_bits2(at, CT_OP_SHL, ct_resize(at, half, PTX_U16, CT_W_32), first_bit);

    return ct_or(at, ct_and(at, word, ct_not(at, mask)), placed);
}

/* old = *p; do { new = f(old); seen = cas(p, old, new); } while (seen != old, with old = seen); the result is old. */
static ct_value build_cas_loop(struct ct_build *b, const struct atomic *atomic)
{
    struct ct_block *again = ct_build_block(b), *done = ct_build_block(b);
    const bool half = is_half(atomic->type);
    const struct half_word around = half ? containing_word(b, &atomic->address) : (struct half_word){.word = atomic->address};
    const enum ptx_type bits = half ? PTX_B32 : ct_bits_type(ct_width_of(atomic->type));
    const ct_value old = ct_value_create(b->fn, ct_width_of(bits));
    struct ct_insn *insn = emit_access(b, &around.word, CT_OP_LOAD, bits, 1, 1);
    ct_value new, seen;

    ct_assign(&b->at, old, insn->results[0]);
    ct_build_jump(b, again);
    ct_build_enter(b, again);
    new = next_value(b, atomic, half ? half_of(b, old, around.first_bit) : old);
    if (half)
        new = with_half(b, old, around.first_bit, new);
    insn = emit_access(b, &around.word, CT_OP_ATOM, bits, 1, 3);
    insn->operation = PTX_CAS;
    insn->operands[1] = old;
    insn->operands[2] = new;
    seen = insn->results[0];
    const ct_value same = ct_icmp(&b->at, bits, PTX_EQ, seen, old);
    ct_assign(&b->at, old, seen);
    ct_build_branch(b, same, done, again);
    ct_build_enter(b, done);
    return half ? half_of(b, old, around.first_bit) : old;
}

/* ---- what atom and red share ---- */

static unsigned wanted_values(enum ptx_operation operation)
{
    return operation == PTX_CAS ? 2 : 1;
}

static bool check_atomic(struct ct_build *b, const struct atomic *atomic)
{
    const unsigned wanted = wanted_values(atomic->operation);
    const unsigned bits = ptx_type_bits(atomic->type);

    if (bits < 16) {
        ct_build_unsupported(b, "this type");
    } else if (atomic->n_values < wanted || atomic->n_values > wanted) {
        ct_build_invalid(b, "wrong number of operands");
    } else if (atomic->address.space != CT_SPACE_GLOBAL && atomic->address.space != CT_SPACE_SHARED &&
               atomic->address.space != CT_SPACE_GENERIC) {
        ct_build_invalid(b, "atomic operations require global or shared memory");
    } else {
        return true;
    }
    return false;
}

/* Reads the operands with the type that the operation needs: untyped, unsigned or float; for min and max the instruction's type gives
 * the signedness. */
static void read_atomic(struct ct_build *b, unsigned first, struct atomic *out)
{
    out->type = b->insn->types[0];
    out->operation = b->insn->mods.operation;
    out->n_values = b->insn->n_operands - first - 1;
    if (out->n_values > MAX_VALUES)
        out->n_values = MAX_VALUES; /* the last operand is a cache policy */
    if (out->operation != PTX_CAS && out->n_values > 1)
        out->n_values = 1;
    if (out->type == PTX_B128)
        out->n_values = wanted_values(out->operation); /* build_wide checks them */
    if (out->type == PTX_B128 || b->insn->mods.vector)
        return;
    for (unsigned i = 0; i < out->n_values; i++)
        out->values[i] = ct_build_source(b, first + 1 + i, out->type);
}

static ct_value build_one(struct ct_build *b, const struct atomic *atomic, bool wanted)
{
    return needs_loop(b, atomic) ? build_cas_loop(b, atomic) : build_atomic_instruction(b, atomic, wanted);
}

void ct_build_reduction(struct ct_build *b, const struct ct_address *to, enum ptx_type type, enum ptx_operation operation, ct_value value)
{
    const struct atomic atomic = {.address = *to, .type = type, .operation = operation, .values = {value}, .n_values = 1};

    build_one(b, &atomic, false);
}

/* .v2 to .v8: each element is a separate atomic operation, in no particular order (PTX ISA, "atom": vectors). */
static void build_elements(struct ct_build *b, struct atomic *atomic, unsigned first, bool wanted)
{
    const unsigned bytes = ptx_type_bits(atomic->type) / 8;
    uint32_t n, n_to = 0;
    const struct ptx_operand *from = ct_build_parts(b, &b->insn->operands[first + 1], atomic->type, &n);
    const struct ptx_operand *to = wanted ? ct_build_parts(b, &b->insn->operands[0], atomic->type, &n_to) : NULL;
    ct_value values[MAX_ELEMENTS], results[MAX_ELEMENTS];

    if (n != b->insn->mods.vector || n > MAX_ELEMENTS || (wanted && n_to != n)) {
        ct_build_invalid(b, "the vector has the wrong length");
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        values[i] = ct_build_read(b, &from[i], atomic->type);
    for (uint32_t i = 0; i < n; i++) {
        atomic->values[0] = values[i];
        results[i] = build_one(b, atomic, wanted);
        atomic->address.offset += bytes;
    }
    for (uint32_t i = 0; i < n_to; i++)
        ct_build_write(b, &to[i], results[i], atomic->type);
}

/* ---- 128 bits ---- */

static ct_value generic_address(struct ct_build *b, const struct ct_address *address)
{
    const ct_value sum = ct_add_imm(&b->at, address->base, (uint64_t)address->offset);

    return address->space == CT_SPACE_SHARED ? ct_or_imm(&b->at, ct_zext64(&b->at, sum), (uint64_t)CT_TAG_SHARED << CT_TAG_SHIFT) : sum;
}

static void call_wide(struct ct_build *b, const struct ct_address *address, const ct_value *expected, const ct_value *value, bool always,
                      ct_value old[2])
{
    const ct_value arguments[] = {
        generic_address(b, address), expected[0], expected[1], value[0], value[1], ct_const32(&b->at, always),
    };
    const struct ptx_operand *callee = &b->insn->operands[b->insn->n_operands - 1];

    b->fn->writes_unseen = true;
    ct_build_function_call(b, callee->function, arguments, sizeof arguments / sizeof *arguments, PTX_B64, old, 2);
}

void ct_build_wide_exchange(struct ct_build *b, const struct ct_address *address, const ct_value value[2], ct_value old[2])
{
    call_wide(b, address, value, value, true, old);
}

void ct_build_wide_swap(struct ct_build *b, const struct ct_address *address, const ct_value expected[2], const ct_value value[2],
                        ct_value old[2])
{
    call_wide(b, address, expected, value, false, old);
}

static bool read_halves(struct ct_build *b, unsigned index, ct_value halves[2])
{
    uint32_t n;
    const struct ptx_operand *parts = ct_build_parts(b, &b->insn->operands[index], PTX_B128, &n);

    for (uint32_t i = 0; n == 2 && i < n; i++)
        halves[i] = ct_build_read(b, &parts[i], PTX_B64);
    return n == 2;
}

/* atom.exch.b128, atom.cas.b128 */
static void build_wide(struct ct_build *b, const struct ct_address *address)
{
    const bool swaps = b->insn->mods.operation == PTX_CAS;
    ct_value first[2], second[2], old[2];
    uint32_t n_to;
    const struct ptx_operand *to = ct_build_parts(b, &b->insn->operands[0], PTX_B128, &n_to);

    if ((!swaps && b->insn->mods.operation != PTX_EXCH) || b->insn->n_operands < 4u + swaps || !read_halves(b, 2, first) ||
        (swaps && !read_halves(b, 3, second)) || (n_to != 2 && ct_build_has(b, 0))) {
        ct_build_invalid(b, "the operands are not those of a 128-bit operation");
        return;
    }
    if (!ct_build_may_be_wide(b))
        return;
    if (swaps)
        ct_build_wide_swap(b, address, first, second, old);
    else
        ct_build_wide_exchange(b, address, first, old);
    for (uint32_t i = 0; ct_build_has(b, 0) && i < 2; i++)
        ct_build_write(b, &to[i], old[i], PTX_B64);
}

/* ---- atom, red ---- */

void ct_build_atom(struct ct_build *b)
{
    const bool red = b->insn->opcode == PTX_OP_RED;
    const bool wanted = !red && ct_build_has(b, 0);
    const enum ptx_semantics semantics = b->insn->mods.semantics;
    struct atomic atomic = {.n_values = 0};

    if (b->insn->n_operands < 2u + !red || !ct_build_address(b, !red, &atomic.address))
        return;
    read_atomic(b, !red, &atomic);
    if (!check_atomic(b, &atomic))
        return;
    if (semantics == PTX_RELEASE || semantics == PTX_ACQ_REL)
        ct_build_fence_of(b, PTX_RELEASE, b->insn->mods.scope);
    if (atomic.type == PTX_B128) {
        build_wide(b, &atomic.address);
    } else if (b->insn->mods.vector) {
        build_elements(b, &atomic, !red, wanted);
    } else {
        const ct_value result = build_one(b, &atomic, wanted);

        if (wanted)
            ct_build_result(b, result, atomic.type);
    }
    if (semantics == PTX_ACQUIRE || semantics == PTX_ACQ_REL)
        ct_build_fence_of(b, PTX_ACQUIRE, b->insn->mods.scope);
}
