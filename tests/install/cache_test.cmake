# SPDX-License-Identifier: Apache-2.0
# `cuttle cache`: show, clear, and precompile, after which a program compiles nothing.
include(${CMAKE_CURRENT_LIST_DIR}/check.cmake)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/home)
set(folder ${WORK}/home/cache)
set(run ${CMAKE_COMMAND} -E env --unset=CUDA_CACHE_DISABLE CUDA_CACHE_PATH=${folder})

# count(<kind> <variable>): the number of its files in the folder.
function(count kind out)
  file(GLOB files ${folder}/${kind}-*)
  list(LENGTH files n)
  set(${out} ${n} PARENT_SCOPE)
endfunction()

run(2 "unknown action frobnicate" ${CUTTLE} cache frobnicate)
run(2 "wrong number of arguments for show" ${CUTTLE} cache show more)
run(2 "wrong number of arguments for precompile" ${CUTTLE} cache precompile)
run(2 "too few arguments" ${CUTTLE} cache)
run(0 "folder ${folder} \\(does not exist yet\\)\n0 files, 0 of at most 1073741824 bytes\n" ${run} ${CUTTLE} cache show)
run(0 "^0 files with 0 bytes removed" ${run} ${CUTTLE} cache clear)
run(0 "of at most 5000000 bytes" ${run} CUDA_CACHE_MAXSIZE=5000000 ${CUTTLE} cache show)
run(1 "there is no folder" ${CMAKE_COMMAND} -E env --unset=HOME --unset=XDG_CACHE_HOME --unset=CUDA_CACHE_PATH ${CUTTLE} cache show)

# The kernel of an example.
configure_file(${PTX} ${WORK}/program.ptx COPYONLY)
run(1 "CUDA_CACHE_DISABLE is set" ${run} CUDA_CACHE_DISABLE=1 ${CUTTLE} cache precompile ${WORK}/program.ptx)
run(3 "missing: it cannot be read" ${run} ${CUTTLE} cache precompile ${WORK}/missing)
run(1 "there is no device" ${run} CUTTLE_DEVICE=none ${CUTTLE} cache precompile ${WORK}/program.ptx)
run(0 "compiling for .*\n1 kernels are in the cache, 0 were refused" ${run} ${CUTTLE} cache precompile ${WORK}/program.ptx)
count(spirv before)
check_equal("kernels in the cache" ${before} 1)
run(0 "matches the CPU reference" ${run} ${CUTTLE} run ${EXAMPLE} --repeat 1 --ptx ${WORK}/program.ptx)
count(spirv after)
check_equal("kernels in the cache after the program, which compiles none" ${after} 1)
find_program(script script)
if(script) # a terminal, which gets a line of progress
  run(0 "\\[0/1\\] vector_add" ${run} ${script} -qec "${CUTTLE} cache precompile ${WORK}/program.ptx" /dev/null)
endif()
file(WRITE ${WORK}/bad.ptx ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry bad()\n{\n tcgen05.wait::ld.sync.aligned;\n ret;\n}\n")
run(1 "" ${run} ${CUTTLE} cache precompile ${WORK}/bad.ptx)

# Only the files of the cache are removed.
file(WRITE ${folder}/notes "a user's\n")
file(WRITE ${folder}/spirv-x "a user's, too\n")
run(0 "\n  spirv +[12] files +[1-9][0-9]* bytes\n" ${run} ${CUTTLE} cache show)
string(REGEX MATCH "\n([0-9]+) files" all "${run_output}")
run(0 "^${CMAKE_MATCH_1} files with [1-9][0-9]* bytes removed" ${run} ${CUTTLE} cache clear)
file(GLOB left RELATIVE ${folder} ${folder}/*)
check_equal("what is left" "${left}" "notes;spirv-x")
run(0 "\n0 files, 0 of" ${run} ${CUTTLE} cache show)

# A folder into which others may write is not touched.
file(CHMOD ${folder} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE WORLD_READ WORLD_WRITE WORLD_EXECUTE)
run(1 "is not used" ${run} ${CUTTLE} cache clear)
