# SPDX-License-Identifier: Apache-2.0
# The OpenCL runtimes for CPUs that tests run on besides Vulkan: those that take SPIR-V. ci/setup installs them.
#
#   intel   Intel's CPU runtime from the Python package index, in .venv: warps are its subgroups of 32
#   pocl    PoCL 6.0 or newer (Debian 13; on Debian 12 in .pocl-root): warps go through work-group memory
#
# cuttle_test_on_opencl(NAME name COMMAND command.. [ENVIRONMENT variable=value..] [ONLY runtime] [POCL_ONCE] [ONCE])
#   registers the test once for each runtime that is there, or for one, as name.intel and name.pocl, with the label "opencl".
#   Exit status 77: skipped. POCL_ONCE: only the build without sanitizers runs it on PoCL, since it costs many seconds, all but all of them
#   in PoCL's compiler, where our sanitizers see nothing; Intel's runtime and lavapipe run the same in every build. ONCE: the same of every
#   runtime, for what is about the code that we emit and calls nothing of ours that other tests do not.
option(CUTTLE_OPENCL_TESTS "Run the tests of devices on OpenCL, too, where a runtime for the CPU is found" ON)
find_file(CUTTLE_OPENCL_INTEL libintelocl.so PATHS ${CMAKE_SOURCE_DIR}/.venv/lib NO_DEFAULT_PATH
          DOC "Intel's OpenCL runtime for CPUs (intel-opencl-rt 2025.0 or newer)")
find_file(CUTTLE_OPENCL_POCL pocl.icd PATHS /etc/OpenCL/vendors NO_DEFAULT_PATH DOC "How the OpenCL loader finds PoCL")
mark_as_advanced(CUTTLE_OPENCL_INTEL CUTTLE_OPENCL_POCL)

# The library of PoCL 6.0 is libpocl.so.2.13.0; older ones (3.1 in Debian 12) take no SPIR-V.
function(cuttle_pocl_takes_spirv icd out)
  set(${out} FALSE PARENT_SCOPE)
  if(EXISTS ${icd})
    file(STRINGS ${icd} library LIMIT_COUNT 1)
    if(library MATCHES "libpocl\\.so\\.([0-9.]+)$" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 2.13)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

# How programs run in .pocl-root, and whether they can: that takes mounts.
set(in_pocl_root sh ${CMAKE_SOURCE_DIR}/ci/in_pocl_root)
function(cuttle_pocl_root_works out)
  cuttle_pocl_takes_spirv(${CMAKE_SOURCE_DIR}/.pocl-root/etc/OpenCL/vendors/pocl.icd works)
  if(works)
    execute_process(COMMAND ${in_pocl_root} test -d ${CMAKE_SOURCE_DIR} -a -d ${CMAKE_BINARY_DIR} RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(NOT status EQUAL 0)
      set(works FALSE)
      message(STATUS "no rights to run programs in .pocl-root: the tests on PoCL are left out")
    endif()
  endif()
  set(${out} ${works} PARENT_SCOPE)
endfunction()

set(CUTTLE_OPENCL_RUNTIMES "")
if(CUTTLE_OPENCL_TESTS AND TARGET OpenCL::Headers)
  if(CUTTLE_OPENCL_INTEL)
    list(APPEND CUTTLE_OPENCL_RUNTIMES intel)
  endif()
  set(CUTTLE_RUN_ON_POCL "") # what stands before a command
  cuttle_pocl_takes_spirv("${CUTTLE_OPENCL_POCL}" has_pocl)
  if(NOT has_pocl)
    cuttle_pocl_root_works(has_pocl)
    if(has_pocl)
      set(CUTTLE_OPENCL_POCL /etc/OpenCL/vendors/pocl.icd) # as it is seen in there
      set(CUTTLE_RUN_ON_POCL ${in_pocl_root})
    endif()
  endif()
  if(has_pocl AND NOT EXISTS /sys/devices/system/cpu)
    set(has_pocl FALSE)
    message(STATUS "/sys is missing, without which PoCL 6.0 ends a process when it starts: the tests on PoCL are left out")
  endif()
  if(has_pocl)
    list(APPEND CUTTLE_OPENCL_RUNTIMES pocl)
    # PoCL 6.0 sometimes ends a process with SIGSEGV in its own compiler.
    set(CUTTLE_RUN_ON_POCL sh ${CMAKE_SOURCE_DIR}/ci/repeat_after_crash ${CMAKE_BINARY_DIR}/pocl-crashes.log ${CUTTLE_RUN_ON_POCL})
  endif()
  list(JOIN CUTTLE_OPENCL_RUNTIMES ", " found)
  message(STATUS "OpenCL runtimes for tests: ${found}")
endif()

# PoCL keeps compiled kernels: here, rather than in the user's folder.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pocl-cache)
set(CUTTLE_ENVIRONMENT_POCL POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/pocl-cache)

function(cuttle_test_on_opencl)
  cmake_parse_arguments(PARSE_ARGV 0 test "POCL_ONCE;ONCE" "NAME;ONLY" "COMMAND;ENVIRONMENT")
  if(test_ONCE AND CUTTLE_SANITIZE)
    return()
  endif()
  list(POP_FRONT test_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  # COST: the longest tests are among them; ctest, which knows nothing of a fresh build, begins with them.
  foreach(runtime ${CUTTLE_OPENCL_RUNTIMES})
    if((test_ONLY AND NOT test_ONLY STREQUAL runtime) OR (test_POCL_ONCE AND CUTTLE_SANITIZE AND runtime STREQUAL "pocl"))
      continue()
    endif()
    string(TOUPPER ${runtime} variable)
    add_test(NAME ${test_NAME}.${runtime} COMMAND ${CUTTLE_RUN_ON_${variable}} ${program} ${test_COMMAND})
    set_tests_properties(${test_NAME}.${runtime} PROPERTIES LABELS "opencl;gpu" SKIP_RETURN_CODE 77 TIMEOUT 600 COST 10
      ENVIRONMENT "CUTTLE_BACKEND=opencl;OCL_ICD_VENDORS=${CUTTLE_OPENCL_${variable}};${CUTTLE_ENVIRONMENT_${variable}};${test_ENVIRONMENT}")
  endforeach()
endfunction()
