/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUTTLE_BENCH_STARTUP_VULKAN_H
#define CUTTLE_BENCH_STARTUP_VULKAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Creates an instance and a device with that many queues for kernels, or as many as it has, and destroys them; with code, the SPIR-V of add.spvasm, also runs that once on `count` words in host-visible
 * memory, which are 1 before and checked afterwards. The least that a program can do. Returns an exit status. */
int run_vulkan(uint32_t n_queues, const uint32_t *code_or_null, size_t code_bytes, uint32_t count);

#endif
