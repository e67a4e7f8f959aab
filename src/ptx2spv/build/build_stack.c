/* SPDX-License-Identifier: Apache-2.0 */
/* build: alloca, stacksave, stackrestore (PTX ISA, "Stack Manipulation Instructions"). A function that uses them has an area in its frame, in
 * which the stack grows down from the end. A thread that needs more fails as one does whose calls are too deep. */
#include "build.h"

enum { STACK_BYTES = 4096, DEFAULT_ALIGN = 8, MAX_ALIGN = 1024 };

static bool uses_stack(const struct ptx_body *syntax)
{
    for (uint32_t i = 0; i < syntax->instructions.n; i++) {
        const enum ptx_opcode opcode = syntax->instructions.v[i].opcode;

        if (opcode == PTX_OP_ALLOCA || opcode == PTX_OP_STACKSAVE || opcode == PTX_OP_STACKRESTORE)
            return true;
    }
    return false;
}

void ct_build_prepare_stack(struct ct_build *b)
{
    if (!uses_stack(b->syntax))
        return;
    b->stack.local = ct_build_new_local(b, NULL, STACK_BYTES, MAX_ALIGN);
    b->stack.pointer = ct_value_create(b->fn, CT_W_32);
    ct_assign(&b->at, b->stack.pointer, ct_add_imm(&b->at, ct_build_local_address(b, b->stack.local), STACK_BYTES));
}

static bool read_align(struct ct_build *b, uint64_t *align)
{
    *align = DEFAULT_ALIGN;
    if (b->insn->n_operands > 2 && !ct_build_constant(b, 2, align))
        *align = 0;
    if (*align && *align <= MAX_ALIGN && !(*align & (*align - 1)))
        return true;
    ct_build_invalid(b, "an illegal alignment");
    return false;
}

/* Ends the thread if the condition holds. */
static void fail_if(struct ct_build *b, ct_value condition)
{
    struct ct_block *overflow = ct_build_block(b), *after = ct_build_block(b);

    ct_build_branch(b, condition, overflow, after);
    ct_build_enter(b, overflow);
    ct_emit_fault(&b->at, PTX2SPV_FAULT_STACK);
    ct_build_terminate(b, CT_OP_EXIT);
    ct_build_jump(b, after); /* ends the dead block after the exit */
    ct_build_enter(b, after);
}

void ct_build_alloca(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    const ct_value bottom = ct_build_local_address(b, b->stack.local), room = ct_sub(at, b->stack.pointer, bottom);
    ct_value size, end;
    uint64_t align;

    if (!read_align(b, &align))
        return;
    size = ct_build_source(b, 1, type);
    fail_if(b, ct_icmp(at, PTX_U64, PTX_GT, ct_resize(at, size, type, CT_W_64), ct_zext64(at, room)));
    end = ct_and_imm(at, ct_sub(at, b->stack.pointer, ct_low32(at, size)), ~(uint32_t)(align - 1));
    fail_if(b, ct_icmp(at, PTX_U32, PTX_LT, end, bottom));
    ct_assign(at, b->stack.pointer, end);
    ct_build_result(b, ct_copy(at, end), PTX_U32);
}

void ct_build_stacksave(struct ct_build *b)
{
    ct_build_result(b, ct_copy(&b->at, b->stack.pointer), PTX_U32);
}

void ct_build_stackrestore(struct ct_build *b)
{
    ct_assign(&b->at, b->stack.pointer, ct_low32(&b->at, ct_build_source(b, 0, b->insn->types[0])));
}
