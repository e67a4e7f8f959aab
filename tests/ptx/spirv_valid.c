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
#include <spirv/unified1/spirv.h>

/* The head of a module tells what it is for. OpenCL 2.2 has SPIR-V 1.2 and allows no capability that came as an extension of OpenCL
 * (half floats, 64-bit atomics) or of SPIR-V: such modules are validated against SPIR-V alone. */
static spv_target_env environment_of(const uint32_t *words, size_t n_words)
{
    bool is_extended = words[1] > 0x00010200;

    for (size_t at = 5; at + 2 < n_words; at += words[at] >> SpvWordCountShift ? words[at] >> SpvWordCountShift : 1)
        switch (words[at] & SpvOpCodeMask) {
        case SpvOpCapability: is_extended |= words[at + 1] == SpvCapabilityInt64Atomics || words[at + 1] == SpvCapabilityFloat16; break;
        case SpvOpExtension: is_extended = true; break;
        case SpvOpMemoryModel:
            if (words[at + 2] != SpvMemoryModelOpenCL)
                return SPV_ENV_VULKAN_1_3;
            return is_extended ? SPV_ENV_UNIVERSAL_1_3 : SPV_ENV_OPENCL_2_2;
        }
    return SPV_ENV_VULKAN_1_3;
}

void assert_valid_spirv(const uint32_t *words, size_t n_words)
{
    const spv_context context = spvContextCreate(environment_of(words, n_words));
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
