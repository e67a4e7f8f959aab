/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers as file descriptors, which Mesa's drm-shim does not know: part of what is preloaded before it (drm_shim_signals.c). */
#ifndef CUTTLE_TESTS_DRM_SHIM_BUFFERS_H
#define CUTTLE_TESTS_DRM_SHIM_BUFFERS_H

typedef int drm_ioctl(int fd, unsigned long request, ...);

/* Does the request, if it is about buffers that are shared. 0: it is not, and was not looked at. */
int drm_shim_buffers(drm_ioctl *next, int fd, unsigned long request, void *argument, int *result);

#endif
