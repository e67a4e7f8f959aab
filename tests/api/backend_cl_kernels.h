/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of backend_vk_kernels.h for OpenCL, in SPIR-V assembly, written by hand to the interface of cuttle/ptx2spv.h: the argument
 * block (the system block, the block's dimensions at 48, the parameters at 64) and work-group memory as the two arguments. */
#ifndef BACKEND_CL_KERNELS_H
#define BACKEND_CL_KERNELS_H

/* arguments: "" or the declaration of the argument in work-group memory. */
#define CL_KERNEL_HEAD(type, arguments)                                                                                                    \
    "OpCapability Addresses\n"                                                                                                             \
    "OpCapability Kernel\n"                                                                                                                \
    "OpCapability Int64\n"                                                                                                                 \
    "OpMemoryModel Physical64 OpenCL\n"                                                                                                    \
    "OpEntryPoint Kernel %main \"main\" %group %local\n"                                                                                   \
    "OpDecorate %group BuiltIn WorkgroupId\n"                                                                                              \
    "OpDecorate %group Constant\n"                                                                                                         \
    "OpDecorate %local BuiltIn LocalInvocationId\n"                                                                                        \
    "OpDecorate %local Constant\n"                                                                                                         \
    "%void = OpTypeVoid\n"                                                                                                                 \
    "%bool = OpTypeBool\n"                                                                                                                 \
    "%u32 = OpTypeInt 32 0\n"                                                                                                              \
    "%u64 = OpTypeInt 64 0\n"                                                                                                              \
    "%u64x3 = OpTypeVector %u64 3\n"                                                                                                       \
    "%global_u32 = OpTypePointer CrossWorkgroup %u32\n"                                                                                    \
    "%global_u64 = OpTypePointer CrossWorkgroup %u64\n"                                                                                    \
    "%shared_u32 = OpTypePointer Workgroup %u32\n"                                                                                         \
    "%in_u64x3 = OpTypePointer Input %u64x3\n"                                                                                             \
    "%entry = OpTypeFunction %void " type "\n"                                                                                             \
    "%one = OpConstant %u32 1\n"                                                                                                           \
    "%two = OpConstant %u32 2\n"                                                                                                           \
    "%three = OpConstant %u32 3\n"                                                                                                         \
    "%six = OpConstant %u32 6\n"                                                                                                           \
    "%seven = OpConstant %u32 7\n"                                                                                                         \
    "%eight = OpConstant %u32 8\n"                                                                                                         \
    "%nine = OpConstant %u32 9\n"                                                                                                          \
    "%ten = OpConstant %u32 10\n"                                                                                                          \
    "%eleven = OpConstant %u32 11\n"                                                                                                       \
    "%twelve = OpConstant %u32 12\n"                                                                                                       \
    "%thirteen = OpConstant %u32 13\n"                                                                                                     \
    "%fourteen = OpConstant %u32 14\n"                                                                                                     \
    "%eighteen = OpConstant %u32 18\n"                                                                                                     \
    "%nineteen = OpConstant %u32 19\n"                                                                                                     \
    "%four64 = OpConstant %u64 4\n"                                                                                                        \
    "%barrier_semantics = OpConstant %u32 0x108\n" /* AcquireRelease | WorkgroupMemory */                                                  \
    "%group = OpVariable %in_u64x3 Input\n"                                                                                                \
    "%local = OpVariable %in_u64x3 Input\n"                                                                                                \
    "%main = OpFunction %void None %entry\n"                                                                                               \
    "%args = OpFunctionParameter %global_u32\n" arguments "%start = OpLabel\n"                                                             \
    "%pnx = OpInBoundsPtrAccessChain %global_u32 %args %six\n"                                                                             \
    "%nx = OpLoad %u32 %pnx Aligned 4\n"                                                                                                   \
    "%pny = OpInBoundsPtrAccessChain %global_u32 %args %seven\n"                                                                           \
    "%ny = OpLoad %u32 %pny Aligned 4\n"                                                                                                   \
    "%pox = OpInBoundsPtrAccessChain %global_u32 %args %nine\n"                                                                            \
    "%ox = OpLoad %u32 %pox Aligned 4\n"                                                                                                   \
    "%poy = OpInBoundsPtrAccessChain %global_u32 %args %ten\n"                                                                             \
    "%oy = OpLoad %u32 %poy Aligned 4\n"                                                                                                   \
    "%poz = OpInBoundsPtrAccessChain %global_u32 %args %eleven\n"                                                                          \
    "%oz = OpLoad %u32 %poz Aligned 4\n"                                                                                                   \
    "%pbx = OpInBoundsPtrAccessChain %global_u32 %args %twelve\n"                                                                          \
    "%bx = OpLoad %u32 %pbx Aligned 4\n"                                                                                                   \
    "%pby = OpInBoundsPtrAccessChain %global_u32 %args %thirteen\n"                                                                        \
    "%by = OpLoad %u32 %pby Aligned 4\n"                                                                                                   \
    "%pbz = OpInBoundsPtrAccessChain %global_u32 %args %fourteen\n"                                                                        \
    "%bz = OpLoad %u32 %pbz Aligned 4\n"                                                                                                   \
    "%args64 = OpBitcast %global_u64 %args\n"                                                                                              \
    "%pdst = OpInBoundsPtrAccessChain %global_u64 %args64 %eight\n"                                                                        \
    "%dst = OpLoad %u64 %pdst Aligned 8\n"                                                                                                 \
    "%pvalue = OpInBoundsPtrAccessChain %global_u32 %args %eighteen\n"                                                                     \
    "%value = OpLoad %u32 %pvalue Aligned 4\n"                                                                                             \
    "%pn = OpInBoundsPtrAccessChain %global_u32 %args %nineteen\n"                                                                         \
    "%n = OpLoad %u32 %pn Aligned 4\n"                                                                                                     \
    "%group_id = OpLoad %u64x3 %group\n"                                                                                                   \
    "%local_id = OpLoad %u64x3 %local\n"                                                                                                   \
    "%wx64 = OpCompositeExtract %u64 %group_id 0\n"                                                                                        \
    "%wy64 = OpCompositeExtract %u64 %group_id 1\n"                                                                                        \
    "%wz64 = OpCompositeExtract %u64 %group_id 2\n"                                                                                        \
    "%tid64 = OpCompositeExtract %u64 %local_id 0\n"                                                                                       \
    "%wx = OpUConvert %u32 %wx64\n"                                                                                                        \
    "%wy = OpUConvert %u32 %wy64\n"                                                                                                        \
    "%wz = OpUConvert %u32 %wz64\n"                                                                                                        \
    "%tid = OpUConvert %u32 %tid64\n"                                                                                                      \
    "%cx = OpIAdd %u32 %wx %ox\n"                                                                                                          \
    "%cy = OpIAdd %u32 %wy %oy\n"                                                                                                          \
    "%cz = OpIAdd %u32 %wz %oz\n"                                                                                                          \
    "%bxy = OpIMul %u32 %bx %by\n"                                                                                                         \
    "%threads = OpIMul %u32 %bxy %bz\n"                                                                                                    \
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

/* if (index < n) dst[index] = 3 * dst[index] + value. */
static const char cl_kernel_step[] = CL_KERNEL_HEAD("%global_u32", "") "%inside = OpULessThan %bool %index %n\n"
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
static const char cl_kernel_reverse[] =
    CL_KERNEL_HEAD("%global_u32 %shared_u32",
                   "%shared = OpFunctionParameter %shared_u32\n") "%mine = OpInBoundsPtrAccessChain %shared_u32 %shared %tid64\n"
                                                                  "%sum = OpIAdd %u32 %index %value\n"
                                                                  "OpStore %mine %sum Aligned 4\n"
                                                                  "OpControlBarrier %two %two %barrier_semantics\n"
                                                                  "%last = OpISub %u32 %threads %one\n"
                                                                  "%mirror = OpISub %u32 %last %tid\n"
                                                                  "%mirror64 = OpUConvert %u64 %mirror\n"
                                                                  "%theirs = OpInBoundsPtrAccessChain %shared_u32 %shared %mirror64\n"
                                                                  "%seen = OpLoad %u32 %theirs Aligned 4\n"
                                                                  "OpStore %pointer %seen Aligned 4\n"
                                                                  "OpReturn\n"
                                                                  "OpFunctionEnd\n";

#endif
