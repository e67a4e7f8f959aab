# SPDX-License-Identifier: Apache-2.0
# `cuttle run`: programs that would get another libcuda.so.1, in every way in which they can ask for it; exit statuses; what --why finds.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
set(here ${CMAKE_CURRENT_LIST_DIR})
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/other ${WORK}/missing)
set(other ${WORK}/other/libcuda.so.1)
run(0 "" ${CC} -shared -fPIC -Wl,-soname,libcuda.so.1 ${here}/stand_in.c -o ${other})

# ---- programs ----
# DT_RPATH is stronger than LD_LIBRARY_PATH, DT_RUNPATH is weaker.
foreach(tags disable enable)
  run(0 "" ${CC} -I${SOURCE}/include ${here}/program/program.c -o ${WORK}/${tags} -L${LIBRARY_FOLDER} -lcuda ${COMPILER_LIBRARY} -lm
    -Wl,--${tags}-new-dtags,-rpath,${WORK}/other)
  run(77 "" ${WORK}/${tags})
  run(0 "devices [1-9][0-9]*, sum 10, kernels 1\n" ${CUTTLE} run ${WORK}/${tags})
  run(0 "devices [1-9][0-9]*, sum 10, kernels 1\n" ${CUTTLE} run --preload -- ${WORK}/${tags})
endforeach()
run(77 "" ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${LIBRARY_FOLDER} ${WORK}/disable)

run(0 "" ${CC} ${here}/opens.c -ldl -o ${WORK}/opens)
run(77 "" ${WORK}/opens ${other})
foreach(name libcuda.so.1 libcuda.so ${other} ${WORK}/missing/libcuda.so.1 /usr/lib/libcuda.so.550.163.01)
  run(0 "^cuInit returns 0\n$" ${CUTTLE} run ${WORK}/opens ${name})
endforeach()
run(1 "libcudart.so.1: cannot open" ${CUTTLE} run ${WORK}/opens libcudart.so.1) # other names are left alone
run(0 "^cuInit returns 0\n$" ${CUTTLE} run --preload ${WORK}/opens libcuda.so.1)
run(77 "" ${CUTTLE} run --preload ${WORK}/opens ${other})

# Child processes, shells, scripts, Python; and `cuttle run` in itself.
run(0 "^cuInit returns 0\n$" ${CUTTLE} run ${WORK}/opens env ${WORK}/opens ${other})
run(0 "^cuInit returns 0\n$" ${CUTTLE} run -- sh -c "exec ${WORK}/opens ${other}")
run(0 "^cuInit returns 0\n$" ${CUTTLE} run -- ${CUTTLE} run -- ${WORK}/opens ${other})
file(WRITE ${WORK}/script "#!/bin/sh\n\"$@\" ${other}\n")
file(CHMOD ${WORK}/script PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(0 "^cuInit returns 0\n$" ${CUTTLE} run ${WORK}/script ${WORK}/opens)
find_program(python python3)
if(python)
  run(0 "^0\n$" ${CUTTLE} run -- ${python} -c "import ctypes\nprint(ctypes.CDLL('${other}').cuInit(0))")
endif()

# ---- exit statuses ----
run(7 "" ${CUTTLE} run -- sh -c "exit 7")
run(127 "no-such-program: No such file" ${CUTTLE} run no-such-program)
run(126 "Permission denied" ${CUTTLE} run ${WORK}/missing)
run(125 "too few arguments" ${CUTTLE} run)
run(125 "--target is for --why" ${CUTTLE} run --target lavapipe true)
run(0 "^-x --why\n$" ${CUTTLE} run echo -x --why) # options after the program are its own
file(COPY ${CUTTLE} DESTINATION ${WORK}/alone)
run(125 "no folder with libcuda.so.1" ${WORK}/alone/cuttle run true)

# ---- --why ----
run(0 "nothing was found" ${CUTTLE} run --why ${WORK}/enable)
run(0 "library libcuda.so.1: ${LIBRARY_FOLDER}/libcuda.so.1\n" ${CUTTLE} run --why ${WORK}/disable)
run(0 "a script.*program: .*sh\n.*nothing was found" ${CUTTLE} run --why ${WORK}/script)
run(127 "no such program" ${CUTTLE} run --why no-such-program)
run(126 "cannot be executed" ${CUTTLE} run --why ${here}/opens.c)
run(125 "unknown target toaster" ${CUTTLE} run --why --target toaster true)
run(0 "" ${CC} -static ${here}/fatbin.c -o ${WORK}/fatbin)
run(1 "problem: .*linked statically.*result: 1 problems" ${CUTTLE} run --why ${WORK}/fatbin)
file(WRITE ${WORK}/text "neither\n")
file(CHMOD ${WORK}/text PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(1 "problem: .*neither an ELF file nor a script" ${CUTTLE} run --why ${WORK}/text)
run(0 "" ${CC} -shared -fPIC ${here}/stand_in.c -Wl,-soname,libcublas.so.99 -o ${WORK}/libcublas.so.99)
run(0 "" ${CC} ${here}/opens.c -Wl,--no-as-needed ${WORK}/libcublas.so.99 -ldl -o ${WORK}/needs -Wl,-rpath,${WORK})
run(0 "library libcublas.so.99: ${WORK}/libcublas.so.99\n  NVIDIA's cuBLAS: tested" ${CUTTLE} run --why ${WORK}/needs)
file(REMOVE ${WORK}/libcublas.so.99)
run(1 "library libcublas.so.99: not found\n.*problem: libcublas.so.99 is missing" ${CUTTLE} run --why ${WORK}/needs)

# Programs with code in them, as nvcc leaves it.
set(head ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry fits()\n{\n ret;\n}\n")
file(WRITE ${WORK}/good.ptx "${head}")
file(WRITE ${WORK}/refused.ptx "${head}.visible .entry refused()\n{\n wgmma.fence.sync.aligned;\n ret;\n}\n")
file(WRITE ${WORK}/wrong.ptx "${head}.visible .entry wrong()\n{\n bogus.u32;\n}\n")
foreach(name good refused wrong)
  run(0 "" ${WORK}/fatbin ${WORK}/${name}.fatbin ptx ${WORK}/${name}.ptx)
endforeach()
run(0 "" ${WORK}/fatbin ${WORK}/machine.fatbin cubin ${WORK}/good.ptx)
foreach(name good refused wrong machine)
  run(0 "" objcopy --add-section .nv_fatbin=${WORK}/${name}.fatbin ${WORK}/opens ${WORK}/${name})
  file(CHMOD ${WORK}/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
run(0 "good: 1 PTX texts, 0 parts.*1 of 1 kernels compile for" ${CUTTLE} run --why ${WORK}/good)
run(0 "1 of 1 kernels compile for h200" ${CUTTLE} run --why --target h200 ${WORK}/good)
run(1 "problem: .*wgmma" ${CUTTLE} run --why ${WORK}/refused)
run(1 "problem: .*line 10: .*bogus" ${CUTTLE} run --why ${WORK}/wrong)
run(1 "problem: there is machine code for NVIDIA's GPUs only" ${CUTTLE} run --why ${WORK}/machine)

# Closed libraries with machine code only: one that is known to run, and one that is not.
foreach(name cufft cudnn)
  run(0 "" ${CC} -shared -fPIC ${here}/stand_in.c -Wl,-soname,lib${name}.so.99 -o ${WORK}/plain.so)
  run(0 "" objcopy --add-section .nv_fatbin=${WORK}/machine.fatbin ${WORK}/plain.so ${WORK}/lib${name}.so.99)
  run(0 "" ${CC} ${here}/opens.c -Wl,--no-as-needed ${WORK}/lib${name}.so.99 -ldl -o ${WORK}/needs -Wl,-rpath,${WORK})
  set(status_cufft 0)
  set(status_cudnn 1)
  run(${status_${name}} "0 PTX texts, 1 parts with machine code only" ${CUTTLE} run --why ${WORK}/needs)
endforeach()
