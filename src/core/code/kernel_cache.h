/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels in the disk cache, for later processes and for modules that are loaded again. */
#ifndef CT_CORE_KERNEL_CACHE_H
#define CT_CORE_KERNEL_CACHE_H

#include "code.h"
#include "core/base/disk_cache.h"

/* False: the result of this compilation is not cached. */
bool ct_kernel_cache_key(const struct ct_code *code, unsigned index, const struct ptx2spv_target *target,
                         const struct ptx2spv_options *options, struct ct_disk_key *out);
/* On success *out is to be finished by ptx2spv_kernel_finish. */
bool ct_kernel_cache_load(const struct ct_disk_key *key, struct ptx2spv_kernel *out);
void ct_kernel_cache_store(const struct ct_disk_key *key, const struct ptx2spv_kernel *kernel);

#endif
