/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes and types of matrices that a device multiplies by itself (VK_KHR_cooperative_matrix). */
#include "vk.h"

#include "core/base/config.h"

#include <stdlib.h>

static unsigned element_of(VkComponentTypeKHR type, bool has_bfloat16)
{
    switch ((unsigned)type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
        return PTX2SPV_MATRIX_F16;
    case (unsigned)VK_COMPONENT_TYPE_BFLOAT16_KHR:
        return has_bfloat16 ? PTX2SPV_MATRIX_BF16 : PTX2SPV_MATRIX_NONE;
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
        return PTX2SPV_MATRIX_F32;
    case VK_COMPONENT_TYPE_SINT8_KHR:
        return PTX2SPV_MATRIX_S8;
    case VK_COMPONENT_TYPE_UINT8_KHR:
        return PTX2SPV_MATRIX_U8;
    case VK_COMPONENT_TYPE_SINT32_KHR:
        return PTX2SPV_MATRIX_S32;
    case VK_COMPONENT_TYPE_UINT32_KHR:
        return PTX2SPV_MATRIX_U32;
    default:
        return PTX2SPV_MATRIX_NONE;
    }
}

static bool is_factor(unsigned element)
{
    return element == PTX2SPV_MATRIX_F16 || element == PTX2SPV_MATRIX_BF16 || element == PTX2SPV_MATRIX_S8 || element == PTX2SPV_MATRIX_U8;
}

/* PTX adds products of floats to f32 or f16, those of integers to 32 bits. */
static bool is_sum(unsigned sum, unsigned factor)
{
    const bool is_integer = factor == PTX2SPV_MATRIX_S8 || factor == PTX2SPV_MATRIX_U8;

    if (is_integer)
        return sum == PTX2SPV_MATRIX_S32 || sum == PTX2SPV_MATRIX_U32;
    return sum == PTX2SPV_MATRIX_F32 || (sum == PTX2SPV_MATRIX_F16 && factor == PTX2SPV_MATRIX_F16);
}

static bool is_size(uint32_t size)
{
    return size >= 2 && size <= 64 && !(size & (size - 1));
}

static bool is_useful(const VkCooperativeMatrixPropertiesKHR *p, const struct ptx2spv_matrix *matrix)
{
    const unsigned widest = p->MSize > p->NSize ? p->MSize : p->NSize;

    return p->scope == VK_SCOPE_SUBGROUP_KHR && !p->saturatingAccumulation && p->AType == p->BType && p->CType == p->ResultType &&
           is_size(p->MSize) && is_size(p->NSize) && is_size(p->KSize) && is_factor(matrix->factor) &&
           is_sum(matrix->sum, matrix->factor) &&
           widest * p->KSize * ptx2spv_matrix_element_bits(matrix->factor) / 8 <= PTX2SPV_MATRIX_BYTES &&
           p->MSize * p->NSize * ptx2spv_matrix_element_bits(matrix->sum) / 8 <= PTX2SPV_MATRIX_BYTES;
}

static void add_matrices(const VkCooperativeMatrixPropertiesKHR *list, uint32_t n, bool has_bfloat16, struct ptx2spv_target *target)
{
    unsigned found = 0;

    for (uint32_t i = 0; i < n && found < PTX2SPV_MATRICES_MAX; i++) {
        const struct ptx2spv_matrix matrix = {.m = (uint8_t)list[i].MSize,
                                              .n = (uint8_t)list[i].NSize,
                                              .k = (uint8_t)list[i].KSize,
                                              .factor = (uint8_t)element_of(list[i].AType, has_bfloat16),
                                              .sum = (uint8_t)element_of(list[i].CType, has_bfloat16)};

        if (is_useful(&list[i], &matrix))
            target->matrices[found++] = matrix;
    }
}

/* The lanes of a warp must be those of a subgroup. */
static bool may_use_matrices(const struct ct_vk_physical *physical, const struct ptx2spv_target *target)
{
    return ct_config()->matrix_units && physical->features.cooperative_matrix.cooperativeMatrix &&
           target->warp_form == PTX2SPV_WARP_NATIVE && target->subgroup_size == 32 && physical->require_subgroup_32 &&
           physical->features.v13.computeFullSubgroups && target->float16 && target->int16 && target->int8;
}

void ct_vk_find_matrices(const struct ct_vk_instance *instance, const struct ct_vk_physical *physical, struct ptx2spv_target *target)
{
    const PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)vkGetInstanceProcAddr(instance->handle,
                                                                                     "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    const VkPhysicalDeviceShaderBfloat16FeaturesKHR *bfloat16 = &physical->features.bfloat16;
    VkCooperativeMatrixPropertiesKHR *list;
    uint32_t n = 0;

    if (!get || !may_use_matrices(physical, target) || get(physical->handle, &n, NULL) != VK_SUCCESS ||
        !(list = calloc(n ? n : 1, sizeof *list)))
        return;
    for (uint32_t i = 0; i < n; i++)
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (get(physical->handle, &n, list) >= VK_SUCCESS)
        add_matrices(list, n, bfloat16->shaderBFloat16Type && bfloat16->shaderBFloat16CooperativeMatrix, target);
    free(list);
}
