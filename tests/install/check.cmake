# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder have in common.

# run(<status, or some with | between them> <regular expression for stdout or stderr> <command>..): `run_output` receives stdout.
function(run status pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT result MATCHES "^(${status})$")
    message(SEND_ERROR "${ARGN}: exit status ${result} instead of ${status}\n${out}${err}")
  elseif(NOT "${out}${err}" MATCHES "${pattern}")
    message(SEND_ERROR "${ARGN}: nothing like '${pattern}' in\n${out}${err}")
  endif()
  set(run_output "${out}" PARENT_SCOPE)
endfunction()

function(check_equal what is wanted)
  if(NOT is STREQUAL wanted)
    message(SEND_ERROR "${what}: '${is}' instead of '${wanted}'")
  endif()
endfunction()

# get_json(<variable> <JSON> <key>..): the value at that place; a fault if there is none.
function(get_json out json)
  string(JSON value ERROR_VARIABLE error GET "${json}" ${ARGN})
  if(error)
    message(SEND_ERROR "no ${ARGN} in the JSON: ${error}")
  endif()
  set(${out} "${value}" PARENT_SCOPE)
endfunction()
