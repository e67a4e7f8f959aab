/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers as file descriptors, which Mesa's drm-shim does not support: part of the library that is preloaded before it
 * (drm_shim_signals.c). */
#ifndef CUTTLE_TESTS_DRM_SHIM_BUFFERS_H
#define CUTTLE_TESTS_DRM_SHIM_BUFFERS_H

#include <stdint.h>

typedef int drm_ioctl(int fd, unsigned long request, ...);

/* Executes the request if it concerns shared buffers. Returns 0 if it does not; the request is then unread. */
int drm_shim_buffers(drm_ioctl *next, int fd, unsigned long request, void *argument, int *result);

/* The caching type of the host memory of a buffer: the kernel maps its own memory according to the flags of the buffer's creation. */
enum drm_shim_kind {
    DRM_SHIM_CACHED,   /* the kernel's, cached */
    DRM_SHIM_UNCACHED, /* the kernel's, write-combined */
    DRM_SHIM_PAGES,    /* pages of the process, which are cached */
};
/* The current size of the memory of each type. Tests find the function by its name (dlsym), since the shim is preloaded. */
uint64_t drm_shim_bytes(enum drm_shim_kind kind);

#endif
