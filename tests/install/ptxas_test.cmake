# SPDX-License-Identifier: Apache-2.0
# The stand-in for ptxas: what it writes is the PTX with a NUL behind it, whatever options there are, and its version is found as XLA looks for it.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
set(ptxas ${SOURCE}/packaging/ptx/bin/ptxas)
set(ptx ${SOURCE}/examples/vector_add/vector_add.nvcc.ptx)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
file(READ ${ptx} text HEX)

# Arguments as XLA gives them, and in other orders and forms. A name with a space is one name.
run(0 "^$" ${ptxas} ${ptx} -o "${WORK}/a b" -arch=sm_75 --warn-on-spills -v)
run(0 "^$" ${ptxas} -arch sm_75 -O3 --output-file ${WORK}/c ${ptx})
foreach(output "a b" c)
  file(READ "${WORK}/${output}" written HEX)
  if(NOT written STREQUAL "${text}00")
    message(SEND_ERROR "${output} is not the PTX with a NUL behind it")
  endif()
endforeach()

run(0 "release [0-9]+\\.[0-9]+, V[0-9]+\\.[0-9]+\\.[0-9]+" ${ptxas} --version)
# `cuttle run` has Triton run it, but does not replace a choice of the user's.
run(0 "^${LIBRARY_FOLDER}/ptx/bin/ptxas\n$" ${CUTTLE} run -- sh -c "echo $TRITON_PTXAS_PATH")
run(0 "^/other\n$" ${CMAKE_COMMAND} -E env TRITON_PTXAS_PATH=/other ${CUTTLE} run -- sh -c "echo $TRITON_PTXAS_PATH")

run(1 "no input file" ${ptxas} -o ${WORK}/d ${WORK}/missing.ptx)
if(EXISTS ${WORK}/d)
  message(SEND_ERROR "without an input there is an output")
endif()
run("1|2" "no name after -o" ${ptxas} ${ptx} -o)
