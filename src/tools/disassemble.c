/* SPDX-License-Identifier: Apache-2.0 */
#include "disassemble.h"

#include <stdio.h>

#ifdef CUTTLE_WITH_SPIRV_TOOLS
#include <spirv-tools/libspirv.h>
#include <stdlib.h>

enum { HEADER_WORDS = 5, OP_EXECUTION_MODE = 16, MAXIMALLY_RECONVERGES = 6023 };

bool tool_can_disassemble(void)
{
    return true;
}

/* Prints a module. The message of a failure is given to the caller if *out_diagnostic is not NULL. */
static bool print_module(const uint32_t *words, size_t n_words, spv_diagnostic *out_diagnostic)
{
    const spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    spv_text text = NULL;
    const bool is_module = spvBinaryToText(context, words, n_words, SPV_BINARY_TO_TEXT_OPTION_INDENT, &text, out_diagnostic) == SPV_SUCCESS;

    if (is_module)
        fwrite(text->str, 1, text->length, stdout);
    spvTextDestroy(text);
    spvContextDestroy(context);
    return is_module;
}

/* Prints a module without the execution mode MaximallyReconvergesKHR, which the SPIRV-Tools of Debian 12 (2023.1) do not know. False: it has no
 * such mode, or fails for another reason. */
static bool print_without_mode(const uint32_t *words, size_t n_words)
{
    uint32_t *copy = malloc(n_words * sizeof *copy);
    size_t used = 0, length;
    bool is_module = false;

    for (size_t at = 0; copy && at < n_words; at += length) {
        length = at ? words[at] >> 16 : HEADER_WORDS;
        if (!length || length > n_words - at)
            break;
        if (at && length == 3 && (words[at] & 0xffff) == OP_EXECUTION_MODE && words[at + 2] == MAXIMALLY_RECONVERGES)
            continue;
        for (size_t i = 0; i < length; i++)
            copy[used++] = words[at + i];
    }
    if (used && used < n_words) {
        printf("; OpExecutionMode MaximallyReconvergesKHR is left out: these SPIRV-Tools do not know it\n");
        is_module = print_module(copy, used, NULL);
    }
    free(copy);
    return is_module;
}

bool tool_disassemble(const uint32_t *words, size_t n_words)
{
    spv_diagnostic diagnostic = NULL;
    const bool is_module = print_module(words, n_words, &diagnostic) || print_without_mode(words, n_words);

    if (!is_module)
        fprintf(stderr, "cuttle: SPIRV-Tools: %s\n", diagnostic ? diagnostic->error : "failure without a message");
    spvDiagnosticDestroy(diagnostic);
    return is_module;
}
#else
bool tool_can_disassemble(void)
{
    return false;
}

bool tool_disassemble(const uint32_t *words, size_t n_words)
{
    (void)words;
    (void)n_words;
    fprintf(stderr, "cuttle: this build lacks SPIRV-Tools\n");
    return false;
}
#endif
