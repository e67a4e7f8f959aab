/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of the buffers of amdgpu. */
#ifndef CUTTLE_TESTS_SHIM_BUFFERS_H
#define CUTTLE_TESTS_SHIM_BUFFERS_H

#include <stdint.h>

/* The caching type of the host memory of a buffer: the kernel maps its own memory according to the flags of the buffer's creation. */
enum drm_shim_caching {
    DRM_SHIM_CACHED,   /* the kernel's, cached */
    DRM_SHIM_UNCACHED, /* the kernel's, write-combined */
    DRM_SHIM_PAGES,    /* pages of the process, which are cached */
};
/* The current size of the memory of each type. Tests find the function by its name (dlsym), since the library is preloaded. */
uint64_t drm_shim_bytes(enum drm_shim_caching caching);

#endif
