# SPDX-License-Identifier: Apache-2.0
# Kernels in CUDA C++ become PTX with Debian's clang: device code only, no NVIDIA SDK, no ptxas.
#
# cuttle_device_code(SOURCE OUTPUT [TARGET])   compiles SOURCE to the PTX file OUTPUT, for sm_70 or TARGET; CUTTLE_CLANG is empty where there is no clang
find_program(CUTTLE_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14
             DOC "clang with the NVPTX target, for the kernels of examples and tests")

function(cuttle_device_code source output)
  set(target sm_70)
  if(ARGC GREATER 2)
    set(target ${ARGV2})
  endif()
  get_filename_component(folder ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CUTTLE_CLANG} -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version
            --cuda-gpu-arch=${target} -Xclang -target-feature -Xclang +ptx70 -std=c++17 -O3 -ffp-contract=off -fdeclspec
            -Wall -I${CMAKE_SOURCE_DIR}/examples/common -S ${source} -o ${output}
    DEPENDS ${source} ${CMAKE_SOURCE_DIR}/examples/common/device.h
    COMMENT "PTX of ${source}"
    VERBATIM)
endfunction()
