/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of Vulkan that volk loads. They stand in a file of their own, since nearly every other one calls some. */
#define VOLK_IMPLEMENTATION
#include "vulkan_compat.h"
