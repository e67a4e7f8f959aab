# SPDX-License-Identifier: Apache-2.0
# The stand-ins before NVRTC and nvJitLink: under `cuttle run` programs get PTX where they ask for machine code, whatever way leads to these libraries.
# Small libraries of the tests' own take the place of NVIDIA's.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
set(here ${CMAKE_CURRENT_LIST_DIR}/jit)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/elsewhere)

# library(<output> <source> <soname> [option..]): as NVIDIA's are, with the soname as the version of all symbols.
function(library output source soname)
  file(WRITE ${WORK}/${soname}.map "${soname} { global: nv*; local: *; };\n")
  run(0 "" ${CC} -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC ${ARGN} ${here}/${source} -Wl,-soname,${soname} -Wl,--version-script=${WORK}/${soname}.map
    -o ${output})
endfunction()
set(nvrtc ${WORK}/libnvrtc.so.13)
library(${nvrtc} real_nvrtc.c libnvrtc.so.13 -DMAJOR=13)
library(${WORK}/elsewhere/libnvrtc.so.13 real_nvrtc.c libnvrtc.so.13 -DMAJOR=13)
library(${WORK}/libnvrtc.so.12.4.127 real_nvrtc.c libnvrtc.so.12 -DMAJOR=12)
library(${WORK}/libnvrtc.so.11.2 real_nvrtc.c libnvrtc.so.11.2 -DMAJOR=11)
library(${WORK}/libnvJitLink.so.13 real_nvjitlink.c libnvJitLink.so.13)
file(CREATE_LINK libnvrtc.so.12.4.127 ${WORK}/libnvrtc.so.12 SYMBOLIC)
file(CREATE_LINK libnvrtc.so.12 ${WORK}/libnvrtc.so SYMBOLIC)
set(program ${PROGRAM})

# Paths, links to them, names in the folders of LD_LIBRARY_PATH. Without `cuttle run` there is machine code.
run(3 "" ${program} nvrtc ${nvrtc} 13)
run(0 "as wanted" ${CUTTLE} run ${program} nvrtc ${nvrtc} 13)
run(0 "as wanted" ${CUTTLE} run ${program} nvrtc ${WORK}/libnvrtc.so.11.2 11)
run(0 "as wanted" ${CUTTLE} run ${program} nvrtc ${WORK}/libnvrtc.so.12.4.127 12)
run(0 "as wanted" ${CUTTLE} run ${program} nvrtc ${WORK}/libnvrtc.so 12)
set(here_first ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK})
run(3 "" ${here_first} ${program} nvrtc libnvrtc.so.13 13)
run(0 "as wanted" ${here_first} ${CUTTLE} run ${program} nvrtc libnvrtc.so.13 13)
run(0 "as wanted" ${here_first} ${CUTTLE} run ${program} nvrtc libnvrtc.so.12 12)
run(0 "as wanted" ${here_first} ${CUTTLE} run ${program} found libnvrtc.so.13 ${WORK}/elsewhere/libnvrtc.so.13)
run(0 "as wanted" ${CUTTLE} run ${program} both ${WORK}/libnvrtc.so.12 ${nvrtc})
run(1 "libnvrtc.so.13: cannot open" ${CUTTLE} run ${program} nvrtc ${WORK}/missing/libnvrtc.so.13 13)

# A program that is linked with it, and finds it by DT_RPATH or DT_RUNPATH, with the versions of its symbols.
foreach(tags disable enable)
  run(0 "" ${CC} -D_GNU_SOURCE ${here}/linked.c ${nvrtc} -o ${WORK}/${tags} -Wl,--${tags}-new-dtags,-rpath,${WORK})
  run(3 "" ${WORK}/${tags})
  run(0 "^$" ${CUTTLE} run ${WORK}/${tags})
endforeach()

# Of LTO-IR in a fat binary the driver's linker must not say that it cannot be linked.
set(log ${WORK}/nvjitlink.log)
run(0 "as wanted" ${CMAKE_COMMAND} -E env CUTTLE_LOG=info CUTTLE_LOG_FILE=${log} ${CUTTLE} run ${program} nvjitlink ${WORK}/libnvJitLink.so.13 ${WORK})
file(READ ${log} said)
if(said MATCHES "cannot be linked" OR NOT said MATCHES "device 0")
  message(SEND_ERROR "the log of the links:\n${said}")
endif()
