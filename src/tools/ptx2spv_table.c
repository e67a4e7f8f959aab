/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the `ptx2spv` command (ptx2spv.def). */
#include "ptx2spv_table.h"

static const struct tool_verb verb = {
    "ptx2spv", 1, 1, "FILE", "compile the kernels of a PTX file to SPIR-V", "A file named - is the standard input or output.", EXIT_USAGE};

static const struct tool_option options[] = {
#define OPTION(id, name, value, help) {0, name, value, help},
#include "ptx2spv.def"
};
_Static_assert(PTX2SPV_ARGUMENT_COUNT <= TOOL_OPTIONS_MAX, "struct tool_arguments has room for the values");

static const struct tool_status statuses[] = {
    {0, "0", "success"},
    {0, "1", "the PTX or the target does not permit it; messages give the reason"},
    {0, "2", "wrong arguments"},
    {0, "3", "a file could not be read or written"},
};

const struct tool_table ptx2spv_table = {
    .program = "ptx2spv",
    .version = CUTTLE_VERSION,
    .help = "compile the kernels of a PTX file to SPIR-V",
    .intro = "ptx2spv is the compiler of Cuttle. It reads the text of a PTX file, compiles its kernels for one target, and writes SPIR-V "
             "modules with "
             "one entry point, main. cuttle(1) has a verb that also reads fat binaries and programs.",
    .is_single = 1,
    .verbs = &verb,
    .n_verbs = 1,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .statuses = statuses,
    .n_statuses = sizeof statuses / sizeof *statuses,
};
