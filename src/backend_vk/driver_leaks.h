/* SPDX-License-Identifier: Apache-2.0 */
/* In builds with AddressSanitizer: what a driver allocates in a call, between begin and end in the same thread, and never frees is not reported.
 * Suppressions cannot do that by function where drivers have neither symbols nor frame pointers. In other builds these do nothing. */
#ifndef CT_VK_DRIVER_LEAKS_H
#define CT_VK_DRIVER_LEAKS_H

#if defined __SANITIZE_ADDRESS__
#define CT_VK_HAS_LEAK_SANITIZER 1
#elif defined __has_feature
#define CT_VK_HAS_LEAK_SANITIZER __has_feature(address_sanitizer)
#else
#define CT_VK_HAS_LEAK_SANITIZER 0
#endif

#if CT_VK_HAS_LEAK_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

static inline void ct_vk_driver_leaks_begin(void)
{
#if CT_VK_HAS_LEAK_SANITIZER
    __lsan_disable();
#endif
}

static inline void ct_vk_driver_leaks_end(void)
{
#if CT_VK_HAS_LEAK_SANITIZER
    __lsan_enable();
#endif
}

#endif
