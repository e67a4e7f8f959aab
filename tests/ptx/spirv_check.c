/* SPDX-License-Identifier: Apache-2.0 */
#include "spirv_check.h"

#ifdef HAVE_SPIRV_TOOLS
#define kDefaultMaxIdBound kDefaultMaxIdBound_here /* Debian 12's header defines it, in each file that includes it */
#include <spirv-tools/libspirv.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>

/* A module's header declares its environment. OpenCL 2.2 has SPIR-V 1.2 and does not allow capabilities that were introduced by an
 * extension of OpenCL (half floats, 64-bit atomics) or of SPIR-V: such modules are validated against SPIR-V alone. */
static spv_target_env environment_of(const uint32_t *words, size_t n_words)
{
    bool is_extended = words[1] > 0x00010200;

    for (size_t at = 5; at + 2 < n_words; at += words[at] >> SpvWordCountShift ? words[at] >> SpvWordCountShift : 1)
        switch (words[at] & SpvOpCodeMask) {
        case SpvOpCapability:
            is_extended |= words[at + 1] == SpvCapabilityInt64Atomics || words[at + 1] == SpvCapabilityFloat16;
            break;
        case SpvOpExtension:
            is_extended = true;
            break;
        case SpvOpMemoryModel:
            if (words[at + 2] != SpvMemoryModelOpenCL)
                return SPV_ENV_VULKAN_1_3;
            return is_extended ? SPV_ENV_UNIVERSAL_1_3 : SPV_ENV_OPENCL_2_2;
        }
    return SPV_ENV_VULKAN_1_3;
}

bool spirv_check(const uint32_t *words, size_t n_words, char *why, size_t why_size)
{
    const spv_context context = spvContextCreate(environment_of(words, n_words));
    const spv_validator_options options = spvValidatorOptionsCreate();
    spv_const_binary_t binary = {words, n_words};
    spv_diagnostic diagnostic = NULL;
    const bool is_valid = spvValidateWithOptions(context, options, &binary, &diagnostic) == SPV_SUCCESS;

    if (!is_valid)
        snprintf(why, why_size, "spirv-val at word %zu: %s", diagnostic ? diagnostic->position.index : 0,
                 diagnostic ? diagnostic->error : "?");
    spvDiagnosticDestroy(diagnostic);
    spvValidatorOptionsDestroy(options);
    spvContextDestroy(context);
    return is_valid;
}
#else
bool spirv_check(const uint32_t *words, size_t n_words, char *why, size_t why_size)
{
    (void)words;
    (void)n_words;
    (void)why;
    (void)why_size;
    return true;
}
#endif
