/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle trace` and `cuttle profile`: run a program and write what it did. */
#include "verbs.h"

#include "trace/trace_diff.h"
#include "trace/traced_program.h"

#include <stdlib.h>

#define DEFAULT_OUTPUT "cuttle-trace.json"

static int compare(const struct tool_arguments *arguments)
{
    const char *a = arguments->values[CUTTLE_TRACE_DIFF];

    if (arguments->n_operands != 1 || arguments->values[CUTTLE_TRACE_OUTPUT] || arguments->values[CUTTLE_TRACE_LIBCUDA] ||
        arguments->values[CUTTLE_TRACE_PRELOAD])
        return tool_wrong_usage(arguments, "the usage is --diff A B, without other arguments", "");
    switch (trace_diff("cuttle trace", a, arguments->operands[0], stdout)) {
    case TRACE_DIFF_SAME:
        return EXIT_SUCCESS;
    case TRACE_DIFF_DIFFERENT:
        return EXIT_FAILURE;
    case TRACE_DIFF_FAILED:
        break;
    }
    return RUN_FAILED;
}

int verb_trace(const struct tool_arguments *arguments)
{
    const char *output = arguments->values[CUTTLE_TRACE_OUTPUT];

    if (arguments->values[CUTTLE_TRACE_DIFF])
        return compare(arguments);
    return traced_program(&(struct traced_program){.verb = "cuttle trace",
                                                   .command = arguments->operands,
                                                   .driver = arguments->values[CUTTLE_TRACE_LIBCUDA],
                                                   .method = arguments->values[CUTTLE_TRACE_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT,
                                                   .outputs.trace = output ? output : DEFAULT_OUTPUT});
}

int verb_profile(const struct tool_arguments *arguments)
{
    const char *from = arguments->values[CUTTLE_PROFILE_FROM];
    const struct traced_outputs outputs = {.trace = arguments->values[CUTTLE_PROFILE_TRACE],
                                           .text = arguments->values[CUTTLE_PROFILE_OUTPUT],
                                           .html = arguments->values[CUTTLE_PROFILE_HTML],
                                           .extent = arguments->values[CUTTLE_PROFILE_RANGE] ? PROFILE_RANGES : PROFILE_ALL,
                                           .is_text_on_stderr = true};

    if (from && arguments->n_operands)
        return tool_wrong_usage(arguments, "--from takes the place of a program: ", arguments->operands[0]);
    if (from && outputs.trace)
        return tool_wrong_usage(arguments, "--from and --trace: there is a trace already", "");
    if (from)
        return traced_profile("cuttle profile", from, &outputs) ? EXIT_SUCCESS : RUN_FAILED;
    if (!arguments->n_operands)
        return tool_wrong_usage(arguments, "too few arguments: the usage is ", arguments->verb->operands);
    return traced_program(&(struct traced_program){.verb = "cuttle profile",
                                                   .command = arguments->operands,
                                                   .driver = arguments->values[CUTTLE_PROFILE_LIBCUDA],
                                                   .method = arguments->values[CUTTLE_PROFILE_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT,
                                                   .outputs = outputs});
}
