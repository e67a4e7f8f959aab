# SPDX-License-Identifier: Apache-2.0
# Registration of tests. A folder sets two variables: cuttle_area is the prefix of its tests' names, cuttle_program_prefix that of its programs.
#
# cuttle_program(target SOURCE.. [LIBRARY library] [LINK library..] [WRAP function..] [DEFINE name..])
#   builds a program with cmocka and the library: `cuda`, like a user's program, unless another one is given. WRAP: functions that the
#   program replaces (ld --wrap).
#
# cuttle_test(name [PROGRAM target] [SOURCES source..] [ARGS argument..] [ENVIRONMENT variable=value..] [VALIDATED] [TIMEOUT seconds] [SKIPS]
#             [THREADS] [OPENCL [OPENCL_OPTIONS option..]] [options of cuttle_program])
#   registers the test <area>.<name>. Its program is `target`, or is built from the sources (name_test.c) as <prefix><name>_test.
#   VALIDATED: runs with Vulkan's validation layer, and fails if it prints a message. SKIPS: exit status 77 means skipped. THREADS: see
#   cuttle_threads_tests. OPENCL: also on the installed OpenCL runtimes, with the same environment (cuttle_test_on_opencl describes the
#   OPENCL_OPTIONS).
#
# cuttle_test_forms(PREFIX prefix [ENVIRONMENT variable=value..] TESTS test..)
#   registers tests of this folder again with other settings, on Vulkan and VALIDATED: <area>.<prefix>_<test>. A test api_<name> is that of
#   a chapter of the API (tests/api): <area>.<prefix>_<name>.
#
# cuttle_threads_tests(target test..)
#   adds the label "threads" to tests of a program: `ci/test` also runs them with ThreadSanitizer, and builds the target threads_tests for that.
#
# cuttle_sanitizes_threads: whether this build uses ThreadSanitizer.
set(cuttle_sanitizes_threads FALSE)
if(CUTTLE_SANITIZE MATCHES "thread")
  set(cuttle_sanitizes_threads TRUE)
endif()
add_custom_target(threads_tests)
function(cuttle_threads_tests target)
  add_dependencies(threads_tests ${target})
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY LABELS threads)
  endforeach()
endfunction()

function(cuttle_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "LINK;WRAP;DEFINE")
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY cuda)
  endif()
  add_executable(${target} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE cuttle_options ${arg_LIBRARY} cmocka::cmocka Threads::Threads ${CMAKE_DL_LIBS} ${arg_LINK})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINE})
  foreach(function ${arg_WRAP})
    target_link_options(${target} PRIVATE -Wl,--wrap=${function})
  endforeach()
endfunction()

function(cuttle_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "VALIDATED;SKIPS;THREADS;OPENCL" "PROGRAM;TIMEOUT" "SOURCES;ARGS;ENVIRONMENT;OPENCL_OPTIONS")
  set(test ${cuttle_area}.${name})
  if(NOT arg_PROGRAM)
    set(arg_PROGRAM ${cuttle_program_prefix}${name}_test)
    if(NOT arg_SOURCES)
      set(arg_SOURCES ${name}_test.c)
    endif()
    cuttle_program(${arg_PROGRAM} ${arg_SOURCES} ${arg_UNPARSED_ARGUMENTS})
  endif()
  add_test(NAME ${test} COMMAND ${arg_PROGRAM} ${arg_ARGS})
  set_tests_properties(${test} PROPERTIES LABELS ${cuttle_area} ENVIRONMENT "${arg_ENVIRONMENT}")
  if(arg_VALIDATED)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT CUTTLE_VALIDATE=1)
  endif()
  if(arg_TIMEOUT)
    set_tests_properties(${test} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
  if(arg_SKIPS)
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(arg_THREADS)
    cuttle_threads_tests(${arg_PROGRAM} ${test})
  endif()
  if(arg_OPENCL)
    cuttle_test_on_opencl(NAME ${test} COMMAND ${arg_PROGRAM} ${arg_ARGS} ENVIRONMENT ${arg_ENVIRONMENT} ${arg_OPENCL_OPTIONS})
  endif()
endfunction()

function(cuttle_test_forms)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PREFIX" "ENVIRONMENT;TESTS")
  foreach(test ${arg_TESTS})
    if(test MATCHES "^api_(.*)")
      set(name ${CMAKE_MATCH_1})
      set(program ${test}_test)
    else()
      set(name ${test})
      set(program ${cuttle_program_prefix}${test}_test)
    endif()
    if(TARGET ${program})
      cuttle_test(${arg_PREFIX}_${name} PROGRAM ${program} VALIDATED ENVIRONMENT CUTTLE_BACKEND=vulkan ${arg_ENVIRONMENT})
    endif()
  endforeach()
endfunction()
