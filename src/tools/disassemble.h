/* SPDX-License-Identifier: Apache-2.0 */
/* SPIR-V as text, by SPIRV-Tools. */
#ifndef CT_TOOLS_DISASSEMBLE_H
#define CT_TOOLS_DISASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this build has SPIRV-Tools. */
bool tool_can_disassemble(void);
/* Prints a module to standard output. False, with a message: it is not a module. */
bool tool_disassemble(const uint32_t *words, size_t n_words);

#endif
