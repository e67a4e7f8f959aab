# SPDX-License-Identifier: Apache-2.0
# The OpenCL runtimes for CPUs that tests run on besides Vulkan: those that take SPIR-V. ci/setup installs them.
#
#   intel   Intel's CPU runtime from the Python package index, in .venv: warps are its subgroups of 32
#   pocl    PoCL 6.0 or newer (Debian 13): warps go through work-group memory
#
# cuttle_test_on_opencl(NAME name COMMAND command.. [ENVIRONMENT variable=value..])
#   registers the test once for each runtime that is there, as name.intel and name.pocl, with the label "opencl". Exit status 77: skipped.
option(CUTTLE_OPENCL_TESTS "Run the tests of devices on OpenCL, too, where a runtime for the CPU is found" ON)
find_file(CUTTLE_OPENCL_INTEL libintelocl.so PATHS ${CMAKE_SOURCE_DIR}/.venv/lib NO_DEFAULT_PATH
          DOC "Intel's OpenCL runtime for CPUs (intel-opencl-rt 2025.0 or newer)")
find_file(CUTTLE_OPENCL_POCL pocl.icd PATHS /etc/OpenCL/vendors NO_DEFAULT_PATH DOC "How the OpenCL loader finds PoCL")
mark_as_advanced(CUTTLE_OPENCL_INTEL CUTTLE_OPENCL_POCL)

set(CUTTLE_OPENCL_RUNTIMES "")
if(CUTTLE_OPENCL_TESTS AND TARGET OpenCL::Headers)
  if(CUTTLE_OPENCL_INTEL)
    list(APPEND CUTTLE_OPENCL_RUNTIMES intel)
  endif()
  # The library of PoCL 6.0 is libpocl.so.2.13.0; older ones (3.1 in Debian 12) take no SPIR-V.
  if(CUTTLE_OPENCL_POCL)
    file(STRINGS ${CUTTLE_OPENCL_POCL} pocl_library LIMIT_COUNT 1)
    if(pocl_library MATCHES "libpocl\\.so\\.([0-9.]+)$" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 2.13)
      list(APPEND CUTTLE_OPENCL_RUNTIMES pocl)
    endif()
  endif()
  list(JOIN CUTTLE_OPENCL_RUNTIMES ", " found)
  message(STATUS "OpenCL runtimes for tests: ${found}")
endif()

function(cuttle_test_on_opencl)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME" "COMMAND;ENVIRONMENT")
  foreach(runtime ${CUTTLE_OPENCL_RUNTIMES})
    string(TOUPPER ${runtime} variable)
    add_test(NAME ${test_NAME}.${runtime} COMMAND ${test_COMMAND})
    set_tests_properties(${test_NAME}.${runtime} PROPERTIES LABELS "opencl;gpu" SKIP_RETURN_CODE 77 TIMEOUT 300
      ENVIRONMENT "CUTTLE_BACKEND=opencl;OCL_ICD_VENDORS=${CUTTLE_OPENCL_${variable}};${test_ENVIRONMENT}")
  endforeach()
endfunction()
