# SPDX-License-Identifier: Apache-2.0
# Counts the float instructions that RADV prints (RADV_DEBUG=shaders) for contractions.ptx: every fma of it, and neither products nor sums.
#   cmake -DJUDGE=.. -DCHIP=vega10 -DPTX=contractions.ptx -P contractions.cmake
file(STRINGS ${PTX} wanted REGEX "^ *fma\\.rn\\.f32")
list(LENGTH wanted n_wanted)
execute_process(COMMAND ${JUDGE} --require ${CHIP} ${PTX}
                OUTPUT_VARIABLE verdict ERROR_VARIABLE text RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the judge gives ${result}: ${verdict}")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/count_instructions.cmake)
count_instructions("${text}" "v_(fma|fmac|fmaak|fmamk)_f32" n_fused)
string(REPLACE ";" "," text "${text}") # lists
string(REGEX MATCHALL "\n\tv_(mul|add|sub|subrev|mac|mad|madak|madmk)_f32[^\n]*" others "${text}")
if(NOT n_fused EQUAL n_wanted OR others)
  message(FATAL_ERROR "${n_fused} of ${n_wanted} fma are one instruction; others: ${others}")
endif()
message("${CHIP}: ${n_fused} of ${n_wanted} fma are one instruction")
