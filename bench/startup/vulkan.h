/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUTTLE_BENCH_STARTUP_VULKAN_H
#define CUTTLE_BENCH_STARTUP_VULKAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does the least that a program can do with Vulkan: creates an instance, and a device with n_queues queues for kernels or as many as it has, and
 * destroys them. With code, which is the SPIR-V of add.spvasm, it also runs that once on `count` words in host-visible memory, which are 1 before
 * and are checked afterwards. Returns an exit status. */
int run_vulkan(uint32_t n_queues, const uint32_t *code_or_null, size_t code_bytes, uint32_t count);

#endif
