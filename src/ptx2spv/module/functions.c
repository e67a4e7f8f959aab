/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of functions, and their addresses (ir.h, CT_TAG_FUNCTION): each function whose address a module takes, in an instruction or
 * in the initial value of a variable, gets a number. Functions that are only called have none, and are not candidates for indirect
 * calls. */
#include "link.h"
#include "module.h"

#include <string.h>

struct numbering {
    uint32_t n; /* numbers given so far */
};

static void take_address(struct numbering *numbering, struct ptx_function *function)
{
    if (!function->address_number)
        function->address_number = ++numbering->n;
}

static void visit_body(struct numbering *numbering, const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->references.n; i++)
        if (function->references.v[i].takes_address)
            take_address(numbering, ct_linked_function(function->references.v[i].function));
}

static void visit_variables(struct numbering *numbering, struct ptx_variable *const *variables, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = 0; i < variables[v]->n_inits; i++)
            if (variables[v]->inits[i].function)
                take_address(numbering, variables[v]->inits[i].function);
}

void ptx_number_functions(struct ptx_module *module)
{
    struct numbering numbering = {0};

    visit_variables(&numbering, module->variables.v, module->variables.n);
    for (uint32_t i = 0; i < module->functions.n; i++) {
        const struct ptx_function *function = module->functions.v[i];

        visit_variables(&numbering, function->variables.v, function->variables.n);
        visit_body(&numbering, function);
    }
}

struct ptx_function *ptx_called_function(const struct ptx_instruction *insn)
{
    const bool is_direct = insn->opcode == PTX_OP_CALL && insn->n_operands > 1 && insn->operands[1].kind == PTX_OPND_FUNC;

    return is_direct ? insn->operands[1].function : NULL;
}

struct ptx_targets *ptx_call_targets(const struct ptx_instruction *insn)
{
    return insn->opcode == PTX_OP_CALL && insn->n_operands > 3 ? insn->operands[3].targets : NULL;
}

struct ptx_function *ptx_call_signature(const struct ptx_instruction *insn)
{
    const struct ptx_targets *targets = ptx_call_targets(insn);

    if (targets && targets->functions && targets->n)
        return targets->functions[0];
    return insn->opcode == PTX_OP_CALL && insn->n_operands > 3 ? insn->operands[3].function : NULL;
}

/* Size in bytes of a parameter; old-style parameters are registers. */
static uint64_t formal_bytes(const struct ptx_variable *formal)
{
    return formal->is_array ? formal->size_bytes : (ptx_type_bits(formal->type) + 7) / 8;
}

static bool same_formals(struct ptx_variable *const *a, uint32_t n_a, struct ptx_variable *const *b, uint32_t n_b)
{
    bool same = n_a == n_b;

    for (uint32_t i = 0; same && i < n_a; i++)
        same = formal_bytes(a[i]) == formal_bytes(b[i]);
    return same;
}

bool ptx_same_signature(const struct ptx_function *a, const struct ptx_function *b)
{
    return same_formals(a->params, a->n_params, b->params, b->n_params) && same_formals(a->results, a->n_results, b->results, b->n_results);
}

/* Functions of the CUDA C++ Programming Guide ("Formatted Output", "Dynamic Global Memory Allocation", "Assertion"), and those that
 * libcudadevrt.a, the device runtime, calls in the driver: all names with one of the prefixes. */
bool ptx_is_system_function(const char *name)
{
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail", PTX_ASSERTION_FAILED};
    static const char *const prefixes[] = {"cnp", "__cuda_syscall_"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}
