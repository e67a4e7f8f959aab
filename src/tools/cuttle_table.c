/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the `cuttle` command (verbs.def). */
#include "verbs.h"

static const struct tool_verb verbs[] = {
#define VERB(id, name, min, max, operands, help, text, usage_status) {#name, min, max, operands, help, text, usage_status},
#include "verbs.def"
};

static const struct tool_option options[] = {
#define OPTION(verb, id, name, value, help) {CUTTLE_##verb, name, value, help},
#include "verbs.def"
};
_Static_assert(CUTTLE_OPTION_COUNT <= TOOL_OPTIONS_MAX, "struct tool_arguments has room for the values");

static const struct tool_status statuses[] = {
#define STATUS(verb, code, meaning) {CUTTLE_##verb, code, meaning},
#include "verbs.def"
};

const struct tool_table cuttle_table = {
    .program = "cuttle",
    .version = CUTTLE_VERSION,
    .help = "run CUDA programs on devices that are not NVIDIA's, through Vulkan or OpenCL",
    .intro =
        "Cuttle is a libcuda.so.1 that compiles the PTX in CUDA programs to SPIR-V and runs it on any device with a driver for Vulkan 1.3 "
        "or "
        "OpenCL 3.0. This command says which devices there are, and works with programs, with compiled code and with the library itself. "
        "Environment variables change what the library does; the verb options lists them.",
    .verbs = verbs,
    .n_verbs = sizeof verbs / sizeof *verbs,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .statuses = statuses,
    .n_statuses = sizeof statuses / sizeof *statuses,
};
