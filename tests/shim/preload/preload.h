/* SPDX-License-Identifier: Apache-2.0 */
/* The library that is preloaded before Mesa's drm-shim: what its parts share. Tests find drm_shim_live and drm_shim_bytes by name
 * (dlsym), since nothing is linked with the library. */
#ifndef CUTTLE_TESTS_SHIM_PRELOAD_H
#define CUTTLE_TESTS_SHIM_PRELOAD_H

#include <stdint.h>

typedef int drm_ioctl(int fd, unsigned long request, ...);

/* A call of ioctl for a device of the shim. */
struct drm_call {
    drm_ioctl *next; /* the shim's */
    int fd;
    unsigned long request;
    void *argument;
};

typedef int drm_handler(const struct drm_call *call);

/* Every handler of ioctls.def: returns what ioctl returns. */
#define CORE(number, handler) drm_handler handler;
#define AMDGPU(number, handler) drm_handler handler;
#define I915(number, handler) drm_handler handler;
#include "ioctls.def"

/* Passes the call on to the shim, which returns a negative error where the kernel sets errno. */
int drm_pass(const struct drm_call *call);
/* Returns -1 with errno. */
int drm_fail(int error);
/* Kernel structures hold pointers as numbers. */
void *drm_pointer(uint64_t address);

/* Objects of the kernel driver that exist now, and what has ever been submitted. */
enum drm_shim_kind {
    DRM_SHIM_BUFFERS,
    DRM_SHIM_SYNCOBJS,
    DRM_SHIM_CONTEXTS,
    DRM_SHIM_MAPPINGS, /* of buffers at addresses of the device (amdgpu; i915 has none: submissions say where buffers are) */
    DRM_SHIM_SUBMISSIONS,
    DRM_SHIM_N_KINDS,
};
int64_t drm_shim_live(enum drm_shim_kind kind);
void drm_shim_add(enum drm_shim_kind kind, int64_t n);

/* The device's file is closed: its objects end. */
void drm_buffers_close(int fd);
void drm_syncobjs_close(int fd);

/* A submission waits for the point of an object, and signals it; 0 is the fence of a binary object. Both fail with errno. */
int drm_syncobj_await_point(uint32_t handle, uint64_t point);
int drm_syncobj_signal_point(uint32_t handle, uint64_t point);

#endif
