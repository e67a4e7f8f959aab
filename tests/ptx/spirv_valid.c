/* SPDX-License-Identifier: Apache-2.0 */
/* spirv-val as a library. */
#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef HAVE_SPIRV_TOOLS
#include <spirv-tools/libspirv.h>

void assert_valid_spirv(const uint32_t *words, size_t n_words)
{
    const spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_3);
    const spv_validator_options options = spvValidatorOptionsCreate();
    spv_const_binary_t binary = {words, n_words};
    spv_diagnostic diagnostic = NULL;

    if (spvValidateWithOptions(context, options, &binary, &diagnostic) != SPV_SUCCESS)
        fail_msg("spirv-val at word %zu: %s", diagnostic ? diagnostic->position.index : 0, diagnostic ? diagnostic->error : "?");
    spvDiagnosticDestroy(diagnostic);
    spvValidatorOptionsDestroy(options);
    spvContextDestroy(context);
}
#else
void assert_valid_spirv(const uint32_t *words, size_t n_words)
{
    (void)words;
    (void)n_words;
}
#endif
