# SPDX-License-Identifier: Apache-2.0
# The commands `cuttle` and `ptx2spv`, and what is made from their tables of verbs: manual pages and completion for bash.
add_executable(ptx2spv src/tools/ptx2spv.c src/tools/ptx2spv_table.c src/tools/targets.c src/tools/tool.c)
target_include_directories(ptx2spv PRIVATE src)
target_link_libraries(ptx2spv PRIVATE cuttle_installed ptx2spv_core)

file(GLOB cuttle_sources CONFIGURE_DEPENDS src/tools/*.c)
list(REMOVE_ITEM cuttle_sources ${CMAKE_SOURCE_DIR}/src/tools/ptx2spv.c)
add_executable(cuttle ${cuttle_sources})
target_link_libraries(cuttle PRIVATE cuttle_installed cuda_static)
target_compile_definitions(cuttle PRIVATE CUTTLE_VERSION="${PROJECT_VERSION}" CUTTLE_RELEASE_DATE="${CUTTLE_RELEASE_DATE}")

set(CUTTLE_MANUAL_FOLDER ${CMAKE_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${CUTTLE_MANUAL_FOLDER})
set(manual_files "")
foreach(command cuttle ptx2spv)
  set(page ${CUTTLE_MANUAL_FOLDER}/${command}.1)
  set(completion ${CUTTLE_MANUAL_FOLDER}/${command}.bash)
  add_custom_command(OUTPUT ${page} ${completion}
    COMMAND cuttle manual ${command} > ${page}
    COMMAND cuttle completion ${command} > ${completion}
    DEPENDS cuttle
    COMMENT "Manual page and completion of ${command}"
    VERBATIM)
  list(APPEND manual_files ${page} ${completion})
endforeach()
add_custom_target(manual ALL DEPENDS ${manual_files})
