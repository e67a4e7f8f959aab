# SPDX-License-Identifier: Apache-2.0
# docs/PAGE.md is what `cuttle PAGE` prints. Run as cmake -DCUTTLE=.. -DDOCUMENT=.. -DPAGE=.. -P docs_test.cmake
execute_process(COMMAND ${CUTTLE} ${PAGE} OUTPUT_VARIABLE printed RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cuttle ${PAGE} failed: ${result}")
endif()
file(READ ${DOCUMENT} written)
if(NOT printed STREQUAL written)
  message(FATAL_ERROR "docs/${PAGE}.md is out of date: cmake --build <build folder> --target docs_${PAGE} writes it anew")
endif()
