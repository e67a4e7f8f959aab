# SPDX-License-Identifier: Apache-2.0
# docs/api.md is what `cuttle api` prints. Run as cmake -DCUTTLE=.. -DDOCUMENT=.. -P docs_test.cmake
execute_process(COMMAND ${CUTTLE} api OUTPUT_VARIABLE printed RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cuttle api failed: ${result}")
endif()
file(READ ${DOCUMENT} written)
if(NOT printed STREQUAL written)
  message(FATAL_ERROR "docs/api.md is out of date: cmake --build <build folder> --target docs_api writes it anew")
endif()
