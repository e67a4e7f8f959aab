/* SPDX-License-Identifier: Apache-2.0 */
#include "passed_registers.h"

/* The common register for this one, if `used` of each width are for those before it. */
static ct_value common_register(struct ct_fn *fn, struct ct_passed_registers *passed, ct_value of, uint32_t used[CT_W_64 + 1])
{
    const enum ct_width width = ct_width_of_value(fn, of);

    if (used[width] == passed->of_width[width].n)
        *CT_PUSH(&fn->compilation->scratch, &passed->of_width[width]) = ct_value_create(fn, width);
    return passed->of_width[width].v[used[width]++];
}

void ct_passed_receive(struct ct_cursor *at, struct ct_passed_registers *passed, const ct_value *registers, uint32_t n)
{
    uint32_t used[CT_W_64 + 1] = {0};

    for (uint32_t i = 0; i < n; i++)
        ct_assign(at, registers[i], common_register(at->fn, passed, registers[i], used));
}

void ct_passed_send(struct ct_cursor *at, struct ct_passed_registers *passed, const ct_value *registers, uint32_t n)
{
    uint32_t used[CT_W_64 + 1] = {0};

    for (uint32_t i = 0; i < n; i++)
        ct_assign(at, common_register(at->fn, passed, registers[i], used), registers[i]);
    for (int width = 0; width <= CT_W_64; width++)
        for (uint32_t i = used[width]; i < passed->of_width[width].n; i++)
            ct_undefine(at, passed->of_width[width].v[i]);
}
