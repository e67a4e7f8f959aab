/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of backend_test.c in SPIR-V assembly, written by hand to the interface of cuttle/ptx2spv.h: six specialization constants, the
 * system block at the start of the push constants, the parameters at 48. */
#ifndef BACKEND_VK_KERNELS_H
#define BACKEND_VK_KERNELS_H

/* Parameters of both kernels. */
struct kernel_params {
    unsigned long long dst;
    unsigned value, n;
};

#define KERNEL_HEAD                                                                                                                        \
    "OpCapability Shader\n"                                                                                                                \
    "OpCapability Int64\n"                                                                                                                 \
    "OpCapability PhysicalStorageBufferAddresses\n"                                                                                        \
    "OpCapability VulkanMemoryModel\n"                                                                                                     \
    "OpMemoryModel PhysicalStorageBuffer64 Vulkan\n"                                                                                       \
    "OpEntryPoint GLCompute %main \"main\" %group %local %push %shared\n"                                                                  \
    "OpExecutionModeId %main LocalSizeId %threads %one %one\n"                                                                             \
    "OpDecorate %threads SpecId 0\n"                                                                                                       \
    "OpDecorate %bx SpecId 1\n"                                                                                                            \
    "OpDecorate %by SpecId 2\n"                                                                                                            \
    "OpDecorate %bz SpecId 3\n"                                                                                                            \
    "OpDecorate %words SpecId 4\n"                                                                                                         \
    "OpDecorate %split SpecId 5\n"                                                                                                         \
    "OpDecorate %group BuiltIn WorkgroupId\n"                                                                                              \
    "OpDecorate %local BuiltIn LocalInvocationId\n"                                                                                        \
    "OpDecorate %block Block\n"                                                                                                            \
    "OpMemberDecorate %block 0 Offset 24\n"                                                                                                \
    "OpMemberDecorate %block 1 Offset 28\n"                                                                                                \
    "OpMemberDecorate %block 2 Offset 36\n"                                                                                                \
    "OpMemberDecorate %block 3 Offset 40\n"                                                                                                \
    "OpMemberDecorate %block 4 Offset 44\n"                                                                                                \
    "OpMemberDecorate %block 5 Offset 48\n"                                                                                                \
    "OpMemberDecorate %block 6 Offset 56\n"                                                                                                \
    "OpMemberDecorate %block 7 Offset 60\n"                                                                                                \
    "%void = OpTypeVoid\n"                                                                                                                 \
    "%bool = OpTypeBool\n"                                                                                                                 \
    "%u32 = OpTypeInt 32 0\n"                                                                                                              \
    "%u64 = OpTypeInt 64 0\n"                                                                                                              \
    "%u32x3 = OpTypeVector %u32 3\n"                                                                                                       \
    "%entry = OpTypeFunction %void\n"                                                                                                      \
    "%threads = OpSpecConstant %u32 1\n"                                                                                                   \
    "%bx = OpSpecConstant %u32 1\n"                                                                                                        \
    "%by = OpSpecConstant %u32 1\n"                                                                                                        \
    "%bz = OpSpecConstant %u32 1\n"                                                                                                        \
    "%words = OpSpecConstant %u32 1\n"                                                                                                     \
    "%split = OpSpecConstantFalse %bool\n"                                                                                                 \
    "%zero = OpConstant %u32 0\n"                                                                                                          \
    "%one = OpConstant %u32 1\n"                                                                                                           \
    "%two = OpConstant %u32 2\n"                                                                                                           \
    "%three = OpConstant %u32 3\n"                                                                                                         \
    "%four = OpConstant %u32 4\n"                                                                                                          \
    "%five = OpConstant %u32 5\n"                                                                                                          \
    "%six = OpConstant %u32 6\n"                                                                                                           \
    "%seven = OpConstant %u32 7\n"                                                                                                         \
    "%four64 = OpConstant %u64 4\n"                                                                                                        \
    "%barrier_semantics = OpConstant %u32 0x6108\n" /* AcquireRelease | WorkgroupMemory | MakeAvailable | MakeVisible */                   \
    "%in_u32x3 = OpTypePointer Input %u32x3\n"                                                                                             \
    "%group = OpVariable %in_u32x3 Input\n"                                                                                                \
    "%local = OpVariable %in_u32x3 Input\n"                                                                                                \
    "%block = OpTypeStruct %u32 %u32 %u32 %u32 %u32 %u64 %u32 %u32\n"                                                                      \
    "%push_block = OpTypePointer PushConstant %block\n"                                                                                    \
    "%push_u32 = OpTypePointer PushConstant %u32\n"                                                                                        \
    "%push_u64 = OpTypePointer PushConstant %u64\n"                                                                                        \
    "%push = OpVariable %push_block PushConstant\n"                                                                                        \
    "%global_u32 = OpTypePointer PhysicalStorageBuffer %u32\n"                                                                             \
    "%shared_array = OpTypeArray %u32 %words\n"                                                                                            \
    "%shared_block = OpTypePointer Workgroup %shared_array\n"                                                                              \
    "%shared_u32 = OpTypePointer Workgroup %u32\n"                                                                                         \
    "%shared = OpVariable %shared_block Workgroup\n"                                                                                       \
    "%main = OpFunction %void None %entry\n"                                                                                               \
    "%start = OpLabel\n"                                                                                                                   \
    "%pnx = OpAccessChain %push_u32 %push %zero\n"                                                                                         \
    "%nx = OpLoad %u32 %pnx\n"                                                                                                             \
    "%pny = OpAccessChain %push_u32 %push %one\n"                                                                                          \
    "%ny = OpLoad %u32 %pny\n"                                                                                                             \
    "%pox = OpAccessChain %push_u32 %push %two\n"                                                                                          \
    "%ox = OpLoad %u32 %pox\n"                                                                                                             \
    "%poy = OpAccessChain %push_u32 %push %three\n"                                                                                        \
    "%oy = OpLoad %u32 %poy\n"                                                                                                             \
    "%poz = OpAccessChain %push_u32 %push %four\n"                                                                                         \
    "%oz = OpLoad %u32 %poz\n"                                                                                                             \
    "%pdst = OpAccessChain %push_u64 %push %five\n"                                                                                        \
    "%dst = OpLoad %u64 %pdst\n"                                                                                                           \
    "%pvalue = OpAccessChain %push_u32 %push %six\n"                                                                                       \
    "%value = OpLoad %u32 %pvalue\n"                                                                                                       \
    "%pn = OpAccessChain %push_u32 %push %seven\n"                                                                                         \
    "%n = OpLoad %u32 %pn\n"                                                                                                               \
    "%group_id = OpLoad %u32x3 %group\n"                                                                                                   \
    "%local_id = OpLoad %u32x3 %local\n"                                                                                                   \
    "%wx = OpCompositeExtract %u32 %group_id 0\n"                                                                                          \
    "%wy = OpCompositeExtract %u32 %group_id 1\n"                                                                                          \
    "%wz = OpCompositeExtract %u32 %group_id 2\n"                                                                                          \
    "%tid = OpCompositeExtract %u32 %local_id 0\n"                                                                                         \
    "%sx = OpIAdd %u32 %wx %ox\n"                                                                                                          \
    "%sy = OpIAdd %u32 %wy %oy\n"                                                                                                          \
    "%sz = OpIAdd %u32 %wz %oz\n"                                                                                                          \
    "%cx = OpSelect %u32 %split %sx %wx\n"                                                                                                 \
    "%cy = OpSelect %u32 %split %sy %wy\n"                                                                                                 \
    "%cz = OpSelect %u32 %split %sz %wz\n"                                                                                                 \
    "%plane = OpIMul %u32 %cz %ny\n"                                                                                                       \
    "%rows = OpIAdd %u32 %plane %cy\n"                                                                                                     \
    "%row = OpIMul %u32 %rows %nx\n"                                                                                                       \
    "%cta = OpIAdd %u32 %row %cx\n"                                                                                                        \
    "%base = OpIMul %u32 %cta %threads\n"                                                                                                  \
    "%index = OpIAdd %u32 %base %tid\n"                                                                                                    \
    "%index64 = OpUConvert %u64 %index\n"                                                                                                  \
    "%bytes = OpIMul %u64 %index64 %four64\n"                                                                                              \
    "%address = OpIAdd %u64 %dst %bytes\n"                                                                                                 \
    "%pointer = OpConvertUToPtr %global_u32 %address\n"

/* if (index < n) dst[index] = 3 * dst[index] + value: not commutative, so every wrong order is detected. */
static const char kernel_step[] = KERNEL_HEAD "%inside = OpULessThan %bool %index %n\n"
                                              "OpSelectionMerge %end None\n"
                                              "OpBranchConditional %inside %then %end\n"
                                              "%then = OpLabel\n"
                                              "%old = OpLoad %u32 %pointer Aligned 4\n"
                                              "%tripled = OpIMul %u32 %old %three\n"
                                              "%new = OpIAdd %u32 %tripled %value\n"
                                              "OpStore %pointer %new Aligned 4\n"
                                              "OpBranch %end\n"
                                              "%end = OpLabel\n"
                                              "OpReturn\n"
                                              "OpFunctionEnd\n";

/* shared[tid] = index + value; barrier; dst[index] = shared[threads - 1 - tid]. */
static const char kernel_reverse[] = KERNEL_HEAD "%mine = OpAccessChain %shared_u32 %shared %tid\n"
                                                 "%sum = OpIAdd %u32 %index %value\n"
                                                 "OpStore %mine %sum\n"
                                                 "OpControlBarrier %two %two %barrier_semantics\n"
                                                 "%last = OpISub %u32 %threads %one\n"
                                                 "%mirror = OpISub %u32 %last %tid\n"
                                                 "%theirs = OpAccessChain %shared_u32 %shared %mirror\n"
                                                 "%seen = OpLoad %u32 %theirs\n"
                                                 "OpStore %pointer %seen Aligned 4\n"
                                                 "OpReturn\n"
                                                 "OpFunctionEnd\n";

#endif
