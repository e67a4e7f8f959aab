/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers as file descriptors, which Mesa's drm-shim does not know: part of what is preloaded before it (drm_shim_signals.c). */
#ifndef CUTTLE_TESTS_DRM_SHIM_BUFFERS_H
#define CUTTLE_TESTS_DRM_SHIM_BUFFERS_H

#include <stdint.h>

typedef int drm_ioctl(int fd, unsigned long request, ...);

/* Does the request, if it is about buffers that are shared. 0: it is not, and was not looked at. */
int drm_shim_buffers(drm_ioctl *next, int fd, unsigned long request, void *argument, int *result);

/* What the host's memory that a buffer is made of is to the host: the kernel maps its own as the flags of its creation say. */
enum drm_shim_kind {
    DRM_SHIM_CACHED,   /* the kernel's, cached */
    DRM_SHIM_UNCACHED, /* the kernel's, write-combined */
    DRM_SHIM_PAGES,    /* the process's own pages, which are cached */
};
/* How much of it there is now. Tests find it by its name (dlsym), since the shim is preloaded. */
uint64_t drm_shim_bytes(enum drm_shim_kind kind);

#endif
