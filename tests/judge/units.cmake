# SPDX-License-Identifier: Apache-2.0
# Counts the matrix instructions that RADV prints (RADV_DEBUG=shaders) for units.ptx: one for each of its products.
#   cmake -DJUDGE=.. -DCHIP=navi31 -DUNITS=rdna3 -DPTX=units.ptx -P units.cmake
file(STRINGS ${PTX} wanted REGEX "^w?mma\\.")
list(LENGTH wanted n_wanted)
execute_process(COMMAND ${JUDGE} --require ${CHIP} --units ${UNITS} ${PTX}
                OUTPUT_VARIABLE verdict ERROR_VARIABLE text RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the judge gives ${result}: ${verdict}")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/count_instructions.cmake)
count_instructions("${text}" "v_wmma_" n_found)
if(NOT n_found EQUAL n_wanted)
  message(FATAL_ERROR "${n_found} matrix instructions for ${n_wanted} products")
endif()
message("${CHIP}: ${n_found} matrix instructions for ${n_wanted} products")
