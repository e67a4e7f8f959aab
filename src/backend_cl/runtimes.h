/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL runtimes that the loader would load, and which of them can be: some abort when they start (PoCL 6.0 where /sys is missing), and
 * would end programs that run on Vulkan. Each is tried once in a child process, and the answer is kept in the disk cache. */
#ifndef CT_CL_RUNTIMES_H
#define CT_CL_RUNTIMES_H

#include <stdbool.h>

enum ct_cl_choice {
    CT_CL_ALL,  /* the loader may load what it finds */
    CT_CL_SOME, /* only the runtimes in a folder that is made for it */
    CT_CL_NONE, /* all of them crash, or their choice must not be followed: *out_reason says which */
};

/* Tries the runtimes that are new or have changed, and warns of those that crash. `start` is called in child processes, with an environment
 * that makes the loader load a single runtime. To be called before any driver is loaded: the fewer threads there are, the better for a fork. */
void ct_cl_runtimes_try(void (*start)(void *user));

/* The outcome. SOME: *out_folder is what OCL_ICD_VENDORS has to be while the loader looks for runtimes; to be removed afterwards. */
enum ct_cl_choice ct_cl_runtimes_choose(const char **out_folder, const char **out_reason);
void ct_cl_runtimes_remove_folder(void);

/* The variables that direct the loader, which end with NULL. */
extern const char *const ct_cl_loader_variables[];

#endif
