# SPDX-License-Identifier: Apache-2.0
# The commands `cuttle` and `ptx2spv`, and what is made from their tables of verbs: manual pages and completion for bash.
add_executable(ptx2spv src/tools/ptx2spv.c src/tools/ptx2spv_table.c src/tools/targets.c src/tools/tool.c)
target_include_directories(ptx2spv PRIVATE src)
target_link_libraries(ptx2spv PRIVATE cuttle_installed ptx2spv_core)
target_compile_definitions(ptx2spv PRIVATE CUTTLE_VERSION="${PROJECT_VERSION}")

# The loader opens it beside libcuda.so.1; it is linked with nothing but the C library.
add_library(cuttle_audit MODULE src/tools/audit/audit.c)
target_include_directories(cuttle_audit PRIVATE src)
target_link_libraries(cuttle_audit PRIVATE cuttle_installed)
set_target_properties(cuttle_audit PROPERTIES OUTPUT_NAME cuttle-audit)

# Where it is when it is installed, too.
configure_file(packaging/ptx/bin/ptxas ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/ptx/bin/ptxas COPYONLY)

# Stand-ins before libraries that compile while a program runs (src/tools/jit/fronted.def). Each has the soname of the library that it is before,
# and depends on that by a name that the auditing library replaces by a path: an empty library lends that name to the linker.
file(STRINGS src/tools/jit/fronted.def fronted REGEX "^FRONTED")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/tools/jit/fronted.def)
foreach(row ${fronted})
  string(REGEX MATCH "\"(.*)\", \"(cuttle-real-([a-z]+)-([0-9]+))\"" matched ${row})
  set(soname ${CMAKE_MATCH_1})
  set(real ${CMAKE_MATCH_2})
  set(source ${CMAKE_MATCH_3})
  set(major ${CMAKE_MATCH_4})
  set(map ${CMAKE_BINARY_DIR}/generated/${soname}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "${soname} { global: nv*; __nv*; local: *; };\n")
  add_library(${real} SHARED src/tools/jit/empty.c)
  target_link_options(${real} PRIVATE -Wl,-soname,${real})
  set_target_properties(${real} PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/generated)

  set(stand_in cuttle_jit_${source}_${major})
  add_library(${stand_in} MODULE src/tools/jit/${source}.c src/tools/jit/real_library.c)
  target_include_directories(${stand_in} PRIVATE src)
  target_compile_definitions(${stand_in} PRIVATE CT_REAL_LIBRARY="${real}")
  target_link_libraries(${stand_in} PRIVATE cuttle_installed Threads::Threads ${CMAKE_DL_LIBS} -Wl,--no-as-needed ${real})
  target_link_options(${stand_in} PRIVATE -Wl,--version-script=${map} -Wl,-soname,${soname} -Wl,-z,nodelete)
  set_target_properties(${stand_in} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${soname} SKIP_BUILD_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/jit)
  list(APPEND CUTTLE_JIT_LIBRARIES ${stand_in})
  if(source STREQUAL nvjitlink)
    target_link_libraries(${stand_in} PRIVATE uthash::uthash)
    # Programs call a function by its name with the version of the header behind it.
    foreach(function Create Destroy AddData AddFile Complete GetLinkedCubinSize GetLinkedCubin GetErrorLogSize GetErrorLog)
      foreach(minor RANGE 9)
        target_link_options(${stand_in} PRIVATE -Wl,--defsym=__nvJitLink${function}_${major}_${minor}=nvJitLink${function})
      endforeach()
    endforeach()
  endif()
endforeach()

# The libcuda.so.1 that records calls for `cuttle trace`. It has the same symbols as the library, but is linked with the C library only.
set(CUTTLE_API_TYPES ${CMAKE_BINARY_DIR}/generated/api_types.def)
add_custom_command(OUTPUT ${CUTTLE_API_TYPES}
  COMMAND ${CMAKE_COMMAND} -DHEADER=${CMAKE_SOURCE_DIR}/include/cuda.h -DOUTPUT=${CUTTLE_API_TYPES} -P ${CMAKE_SOURCE_DIR}/src/tools/trace/api_types.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/include/cuda.h ${CMAKE_SOURCE_DIR}/src/tools/trace/api_types.cmake
  COMMENT "Table of the driver API's types"
  VERBATIM)
add_custom_target(api_types DEPENDS ${CUTTLE_API_TYPES})

# The page of `cuttle profile --html`.
set(CUTTLE_PROFILE_PAGE ${CMAKE_BINARY_DIR}/generated/profile_page.inc)
add_custom_command(OUTPUT ${CUTTLE_PROFILE_PAGE}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_SOURCE_DIR}/src/tools/trace/profile_page.html -DOUTPUT=${CUTTLE_PROFILE_PAGE}
          -P ${CMAKE_SOURCE_DIR}/src/tools/trace/text_to_c.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/src/tools/trace/profile_page.html ${CMAKE_SOURCE_DIR}/src/tools/trace/text_to_c.cmake
  COMMENT "Page of cuttle profile"
  VERBATIM)
add_custom_target(profile_page DEPENDS ${CUTTLE_PROFILE_PAGE})

file(GLOB interpose_sources CONFIGURE_DEPENDS src/tools/interpose/*.c)
add_library(cuttle_interpose SHARED ${interpose_sources} src/api/entry_lookup.c src/tools/trace/api_types.c src/tools/trace/signature.c)
target_include_directories(cuttle_interpose PRIVATE src src/api ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(cuttle_interpose PRIVATE cuttle_installed Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(cuttle_interpose PRIVATE -Wl,--version-script=${CUTTLE_EXPORT_MAP} -Wl,-z,defs -Wl,-z,nodelete -Wl,-Bsymbolic)
set_target_properties(cuttle_interpose PROPERTIES OUTPUT_NAME cuda SOVERSION 1 VERSION 1 LINK_DEPENDS ${CUTTLE_EXPORT_MAP}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/trace)
add_dependencies(cuttle_interpose cuda api_types) # cuda makes the export map

# Where the libraries are from the folder of the commands.
include(GNUInstallDirs)
set(CUTTLE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR}/cuttle)
if(IS_ABSOLUTE ${CUTTLE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_BINDIR})
  set(CUTTLE_LIBRARY_PLACE ${CMAKE_INSTALL_FULL_LIBDIR}/cuttle)
else()
  file(RELATIVE_PATH CUTTLE_LIBRARY_PLACE /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CUTTLE_INSTALL_LIBDIR})
endif()

file(GLOB cuttle_sources CONFIGURE_DEPENDS src/tools/*.c src/tools/selftest/*.c src/tools/trace/*.c)
list(REMOVE_ITEM cuttle_sources ${CMAKE_SOURCE_DIR}/src/tools/ptx2spv.c)
add_executable(cuttle ${cuttle_sources})
target_link_libraries(cuttle PRIVATE cuttle_installed cuda_static nvml_static uthash::uthash)
add_dependencies(cuttle nvml_helper api_types profile_page) # cuttle smi starts the helper
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
