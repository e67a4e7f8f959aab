/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX in a file, parsed: PTX text, fat binaries, executables, shared objects and object files that contain some. */
#ifndef CT_TOOLS_CODE_FILE_H
#define CT_TOOLS_CODE_FILE_H

#include "core/code/image.h"
#include "cuttle/ptx2spv.h"

/* A module for each PTX text; one for all of them if they need each other's functions. */
struct tool_code {
    char *bytes;
    size_t size;
    struct ct_image image;
    struct ptx2spv_module **modules;
    unsigned n_modules;
    bool is_linked;     /* there is one module for all texts */
    unsigned n_refused; /* texts that the compiler rejected; it reported the reasons to options->on_diagnostic */
};

/* Reads and parses a file. A host program without any code for GPUs gives no module. *out is untouched on failure: FILE_NOT_FOUND, INVALID_IMAGE
 * (none of these kinds of files, or damaged), OUT_OF_MEMORY. */
CUresult tool_code_open(const char *path, const struct ptx2spv_options *options, struct tool_code *out);
void tool_code_finish(struct tool_code *code);
/* The number of kernels in all modules. */
unsigned tool_code_kernels(const struct tool_code *code);
/* Why a file could not be opened, in words. */
const char *tool_code_failure(CUresult result);

/* The first error that the compiler reports, for messages of one line; any further ones are consequences as a rule. To be zeroed before. */
struct tool_message {
    unsigned line, column;
    char text[256];
};
/* For ptx2spv_options.on_diagnostic; `user` is a struct tool_message. */
void tool_message_keep(void *user, const struct ptx2spv_diagnostic *diagnostic);
/* Prints ": line LINE: TEXT", or the status in words if the compiler said nothing, and a newline. */
void tool_message_print(const struct tool_message *message, enum ptx2spv_status status);

#endif
