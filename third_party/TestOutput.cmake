# SPDX-License-Identifier: Apache-2.0
# What every test has in its environment, and what no test may print, whatever its exit status is. Every folder with tests says include(TestOutput); the top folder checks that.
#
# Tests compile their kernels, and keep none in the user's folder: CUDA_CACHE_DISABLE=1. Those of the cache itself unset it. They compile what they
# launch and no other kernels, so that a test's work does not depend on how busy the machine is: CUTTLE_COMPILE_THREADS=0, unless it is set.
#
# Messages of the Vulkan validation layer fail each test that switches it on (CUTTLE_VALIDATE=1, INTEROP_VALIDATE=1), wherever in its
# processes they arise, and however late: objects that were forgotten are reported when their device is destroyed. The library logs all
# messages as errors, but for those that it expects (backend_vk/instance.c). A failure in the teardown of a cmocka group fails the test, too:
# cmocka 1.1 prints it, and leaves it out of its result.
set(CUTTLE_VALIDATION_MESSAGE "[Vv]alidation ([Ee]rror|[Ww]arning)")

function(cuttle_watch_test_output)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    get_property(environment TEST ${test} PROPERTY ENVIRONMENT)
    set_property(TEST ${test} APPEND PROPERTY FAIL_REGULAR_EXPRESSION "GROUP TEARDOWN")
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT CUDA_CACHE_DISABLE=1)
    if(NOT environment MATCHES "CUTTLE_COMPILE_THREADS=")
      set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT CUTTLE_COMPILE_THREADS=0)
    endif()
    if(environment MATCHES "(CUTTLE|INTEROP)_VALIDATE=1")
      set_property(TEST ${test} APPEND PROPERTY FAIL_REGULAR_EXPRESSION "${CUTTLE_VALIDATION_MESSAGE}")
      if(environment MATCHES "CUTTLE_LOG(_FILE)?=")
        message(FATAL_ERROR "${test}: the validation layer is on, and its messages could be lost: do not set ${CMAKE_MATCH_0}")
      endif()
    endif()
  endforeach()
  set_property(DIRECTORY PROPERTY CUTTLE_WATCHES_TEST_OUTPUT TRUE)
endfunction()

# For the top folder, when all others are done.
function(cuttle_check_that_output_is_watched folder)
  get_property(tests DIRECTORY ${folder} PROPERTY TESTS)
  get_property(watched DIRECTORY ${folder} PROPERTY CUTTLE_WATCHES_TEST_OUTPUT)
  if(tests AND NOT watched)
    message(FATAL_ERROR "${folder}/CMakeLists.txt adds tests: include(TestOutput) there")
  endif()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner ${folders})
    cuttle_check_that_output_is_watched(${inner})
  endforeach()
endfunction()

# When the folder's tests have all their properties.
cmake_language(DEFER CALL cuttle_watch_test_output)
