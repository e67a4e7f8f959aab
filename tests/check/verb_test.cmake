# SPDX-License-Identifier: Apache-2.0
# `cuttle check`: exit statuses, options, suppressions.
include(${CMAKE_CURRENT_LIST_DIR}/../install/check.cmake)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

# ---- exit statuses ----
run(0 "Invalid global write of 4 bytes .out-of-bounds.\n.*in kernel write, line [0-9]+ of its PTX\n.*by thread .3,0,0. in block .1,0,0.\n"
  ${CUTTLE} check ${PLANTED} write_behind)
run(9 "reports about kernels: 1, which happened 1 times" ${CUTTLE} check --error-exitcode 9 -- ${PLANTED} write_behind)
run(0 "about kernels: 0," ${CUTTLE} check --error-exitcode 9 ${PLANTED} write_behind good)
run(7 "about kernels: 0," ${CUTTLE} check --error-exitcode 9 ${PLANTED})
run(137 "" ${CUTTLE} check ${PLANTED} signal)
run(127 "no-such-program: No such file" ${CUTTLE} check no-such-program)
run(126 "Permission denied" ${CUTTLE} check ${WORK})
run(125 "too few arguments" ${CUTTLE} check)
foreach(number 0 256 x 1x -1)
  run(125 "from 1 to 255, not ${number}" ${CUTTLE} check --error-exitcode ${number} true)
endforeach()
run(125 "no such file: .*missing" ${CUTTLE} check --suppressions ${WORK}/missing true)

# ---- which kernels ----
run(9 "kernel write" ${CUTTLE} check --error-exitcode 9 --kernel writ ${PLANTED} write_behind)
run(0 "about kernels: 0," ${CUTTLE} check --error-exitcode 9 --kernel other ${PLANTED} freed good)

# ---- suppressions ----
file(WRITE ${WORK}/all "# a comment\n\n*\n")
file(WRITE ${WORK}/kernel "out-of-bounds in kernel write,\n")
file(WRITE ${WORK}/others "out-of-bounds in kernel read,\nmisaligned\nleak\n")
run(0 "about kernels: 0," ${CUTTLE} check --error-exitcode 9 --suppressions ${WORK}/all ${PLANTED} write_behind)
run(0 "about kernels: 0," ${CUTTLE} check --error-exitcode 9 --suppressions ${WORK}/kernel ${PLANTED} write_behind)
run(9 "about kernels: 1," ${CUTTLE} check --error-exitcode 9 --suppressions ${WORK}/others ${PLANTED} write_behind)
run(0 "" ${CUTTLE} check --error-exitcode 9 --suppressions ${WORK}/others ${PLANTED} leak)

# ---- files ----
run(9 "^$" ${CUTTLE} check --error-exitcode 9 --log ${WORK}/log --json ${PLANTED} write_behind)
file(READ ${WORK}/log log)
if(NOT log MATCHES "^{\"kind\": \"out-of-bounds\".*}\n$")
  message(SEND_ERROR "the log is ${log}")
endif()
string(JSON kernel GET "${log}" kernel)
check_equal("the kernel in the log" "${kernel}" write)

run(0 "kernel write" ${CUTTLE} run --check ${PLANTED} write_behind)
run(125 "nothing for --check" ${CUTTLE} run --why --check ${PLANTED})

# Without the option nothing is checked, and a child process is checked like its parent.
run(9 "kernel write" ${CUTTLE} check --error-exitcode 9 -- sh -c "${PLANTED} write_behind; true")
