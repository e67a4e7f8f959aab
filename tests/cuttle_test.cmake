# SPDX-License-Identifier: Apache-2.0
# How tests are registered.
#
# cuttle_threads_tests(target test..)
#   gives tests of a program the label "threads": `ci/test` runs them with ThreadSanitizer, too, and builds the target threads_tests for that.
add_custom_target(threads_tests)
function(cuttle_threads_tests target)
  add_dependencies(threads_tests ${target})
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY LABELS threads)
  endforeach()
endfunction()
