# SPDX-License-Identifier: Apache-2.0
# Installs into a folder, and builds and runs a program against what is there, by pkg-config and by find_package.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
set(prefix ${WORK}/prefix)
set(program ${CMAKE_CURRENT_LIST_DIR}/program)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(0 "" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# The installed files, and no others.
file(GLOB_RECURSE files RELATIVE ${prefix} LIST_DIRECTORIES false ${prefix}/*)
list(SORT files)
set(wanted
  bin/cuttle bin/ptx2spv
  include/cuttle/cuda.h include/cuttle/cudaProfiler.h include/cuttle/ptx2spv.h include/cuttle/workarounds.def
  ${LIBDIR}/cmake/Cuttle/CuttleConfig.cmake ${LIBDIR}/cmake/Cuttle/CuttleConfigVersion.cmake
  ${LIBDIR}/cmake/Cuttle/CuttleTargets-${CONFIG}.cmake ${LIBDIR}/cmake/Cuttle/CuttleTargets.cmake
  ${LIBDIR}/cuttle/libcuda.so ${LIBDIR}/cuttle/libcuda.so.1 ${LIBDIR}/cuttle/libcuttle-audit.so ${LIBDIR}/cuttle/libptx2spv.a
  ${LIBDIR}/cuttle/libnvidia-ml.so.1 ${LIBDIR}/cuttle/cuttle-nvml-helper ${LIBDIR}/cuttle/trace/libcuda.so.1
  ${LIBDIR}/cuttle/ptx/bin/ptxas ${LIBDIR}/cuttle/jit/libnvJitLink.so.12 ${LIBDIR}/cuttle/jit/libnvJitLink.so.13
  ${LIBDIR}/cuttle/jit/libnvrtc.so.11.2 ${LIBDIR}/cuttle/jit/libnvrtc.so.12 ${LIBDIR}/cuttle/jit/libnvrtc.so.13
  ${LIBDIR}/pkgconfig/cuttle.pc ${LIBDIR}/pkgconfig/ptx2spv.pc
  share/bash-completion/completions/cuttle share/bash-completion/completions/ptx2spv
  share/man/man1/cuttle.1 share/man/man1/ptx2spv.1)
list(SORT wanted)
check_equal("the installed files" "${files}" "${wanted}")
file(READ_SYMLINK ${prefix}/${LIBDIR}/cuttle/libcuda.so link)
check_equal("libcuda.so" "${link}" libcuda.so.1)

# Nothing tells where it was built or installed: the tree may be moved. (The folder of the build contains that of the installation here.)
foreach(file ${files})
  file(STRINGS ${prefix}/${file} found REGEX "(${SOURCE}|${BUILD})/" LIMIT_COUNT 1)
  if(found)
    message(SEND_ERROR "${file} contains a path of the build: ${found}")
  endif()
endforeach()
foreach(file bin/cuttle bin/ptx2spv ${LIBDIR}/cuttle/libcuda.so.1 ${LIBDIR}/cuttle/libcuttle-audit.so ${LIBDIR}/cuttle/libnvidia-ml.so.1
        ${LIBDIR}/cuttle/cuttle-nvml-helper ${LIBDIR}/cuttle/trace/libcuda.so.1 ${LIBDIR}/cuttle/jit/libnvrtc.so.13 ${LIBDIR}/cuttle/jit/libnvJitLink.so.13)
  execute_process(COMMAND readelf -d ${prefix}/${file} OUTPUT_VARIABLE dynamic)
  if(dynamic MATCHES "RPATH|RUNPATH" OR NOT dynamic MATCHES "NEEDED")
    message(SEND_ERROR "${file}: it has an RPATH, or is no program:\n${dynamic}")
  endif()
endforeach()

# DESTDIR comes before the prefix.
run(0 "" ${CMAKE_COMMAND} -E env DESTDIR=${WORK}/root ${CMAKE_COMMAND} --install ${BUILD} --prefix /opt/cuttle)
foreach(file ${wanted})
  if(NOT EXISTS ${WORK}/root/opt/cuttle/${file})
    message(SEND_ERROR "with DESTDIR there is no ${file}")
  endif()
endforeach()

# The installed commands run, from another place, too.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)
run(0 "usage: cuttle VERB" ${prefix}/bin/cuttle --help)
run(0 "." ${prefix}/bin/cuttle info --name)
run(0 "^GPU 0: " ${prefix}/bin/cuttle smi -L)
run(0 "usage: ptx2spv" ${prefix}/bin/ptx2spv --help)

# Programs that use what is installed. Both are linked with it, and need LD_LIBRARY_PATH unless they have an RPATH.
set(runs ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/${LIBDIR}/cuttle)
set(right "devices [1-9][0-9]*, sum 10, kernels 1\n")
run(0 "" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${program} -B ${WORK}/found -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC})
run(0 "" ${CMAKE_COMMAND} --build ${WORK}/found)
run(0 "${right}" ${WORK}/found/program)
if(PKG_CONFIG)
  set(pkg ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${prefix}/${LIBDIR}/pkgconfig ${PKG_CONFIG})
  run(0 "^${VERSION}\n$" ${pkg} --modversion cuttle)
  run(0 "" ${pkg} --cflags --libs cuttle ptx2spv)
  string(STRIP "${run_output}" flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(0 "" ${CC} -Wall -Werror -o ${WORK}/program ${program}/program.c ${flags})
  run(0 "${right}" ${runs} ${WORK}/program)
  run(0 "${right}" ${prefix}/bin/cuttle run -- ${WORK}/program)
endif()

# Manual pages, by what is installed to check them. `man` reports what troff does not know.
find_program(man man)
find_program(mandoc mandoc)
foreach(page cuttle ptx2spv)
  if(man)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C.UTF-8 MAN_KEEP_STDERR=1 ${man} --warnings -l ${prefix}/share/man/man1/${page}.1
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE warnings)
    check_equal("warnings of man about ${page}.1" "${status} ${warnings}" "0 ")
  endif()
  if(mandoc)
    run(0 "" ${mandoc} -Tlint -W warning ${prefix}/share/man/man1/${page}.1)
  endif()
endforeach()
