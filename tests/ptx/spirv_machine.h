/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and runs emitted SPIR-V. */
#ifndef TESTS_PTX_SPIRV_MACHINE_H
#define TESTS_PTX_SPIRV_MACHINE_H

#include "ir_machine.h"

/* Runs the integer part of a module with one entry point and one thread: stores through PhysicalStorageBuffer pointers are the events,
 * their address the offset. Fails the test on instructions that it does not know. */
void run_spirv(const uint32_t *words, size_t n_words, struct trace *out);

/* Fails the test unless spirv-val (the library) takes the module for Vulkan 1.3 or OpenCL, as its head says. Does nothing where the library is not there. */
void assert_valid_spirv(const uint32_t *words, size_t n_words);

/* Keeps PTX that was compiled for the judges (tests/judge), if CUTTLE_PTX_DIR says where. */
void keep_ptx(const char *text);

/* How many instructions of an opcode a module has. */
unsigned count_spirv(const uint32_t *words, size_t n_words, uint32_t opcode);

#endif
