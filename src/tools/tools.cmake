# SPDX-License-Identifier: Apache-2.0
# The commands `cuttle` and `ptx2spv`, and what is made from their tables of verbs: manual pages and completion for bash.
add_executable(ptx2spv src/tools/ptx2spv.c src/tools/ptx2spv_table.c src/tools/targets.c src/tools/tool.c)
target_include_directories(ptx2spv PRIVATE src)
target_link_libraries(ptx2spv PRIVATE cuttle_installed ptx2spv_core)
target_compile_definitions(ptx2spv PRIVATE CUTTLE_VERSION="${PROJECT_VERSION}")

# The loader opens it beside libcuda.so.1; it is linked with nothing but the C library.
add_library(cuttle_audit MODULE src/tools/audit/audit.c)
target_link_libraries(cuttle_audit PRIVATE cuttle_installed)
set_target_properties(cuttle_audit PROPERTIES OUTPUT_NAME cuttle-audit)

# Where the libraries are from the folder of the commands.
include(GNUInstallDirs)
set(CUTTLE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR}/cuttle)
if(IS_ABSOLUTE ${CUTTLE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_BINDIR})
  set(CUTTLE_LIBRARY_PLACE ${CMAKE_INSTALL_FULL_LIBDIR}/cuttle)
else()
  file(RELATIVE_PATH CUTTLE_LIBRARY_PLACE /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CUTTLE_INSTALL_LIBDIR})
endif()

file(GLOB cuttle_sources CONFIGURE_DEPENDS src/tools/*.c src/tools/selftest/*.c)
list(REMOVE_ITEM cuttle_sources ${CMAKE_SOURCE_DIR}/src/tools/ptx2spv.c)
add_executable(cuttle ${cuttle_sources})
target_link_libraries(cuttle PRIVATE cuttle_installed cuda_static nvml_static)
add_dependencies(cuttle nvml_helper) # cuttle smi starts it
if(TARGET SPIRV::Tools)
  target_link_libraries(cuttle PRIVATE SPIRV::Tools)
  set_property(SOURCE src/tools/disassemble.c APPEND PROPERTY COMPILE_DEFINITIONS CUTTLE_WITH_SPIRV_TOOLS)
else()
  message(STATUS "SPIRV-Tools not found: cuttle compile --disassemble is left out")
endif()
set_property(SOURCE src/tools/library_folder.c APPEND PROPERTY COMPILE_DEFINITIONS CUTTLE_LIBRARY_PLACE="${CUTTLE_LIBRARY_PLACE}")
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
