# SPDX-License-Identifier: Apache-2.0
# count_instructions(TEXT PATTERN OUT): the number of instructions in what RADV prints (RADV_DEBUG=shaders) whose names match PATTERN; repeated lines
# are printed once.
function(count_instructions text pattern out)
  string(REPLACE ";" "," text "${text}") # lists
  string(REGEX MATCHALL "\n\t${pattern}[^\n]*(\n\t?\\(then repeated [0-9]+ times\\))?" lines "${text}")
  set(n 0)
  foreach(line IN LISTS lines)
    math(EXPR n "${n} + 1")
    if(line MATCHES "repeated ([0-9]+) times")
      math(EXPR n "${n} + ${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${out} ${n} PARENT_SCOPE)
endfunction()
