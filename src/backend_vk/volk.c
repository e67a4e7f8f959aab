/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan functions that volk loads. They are defined in a file of their own, since nearly every other file calls some of them. */
#define VOLK_IMPLEMENTATION
#include "vulkan_compat.h"
