# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs, by components, which are also the Debian packages (packages.cmake):
#
#   libcuttle1   <libdir>/cuttle/libcuda.so.1, in a folder of its own, so that it never replaces the library of NVIDIA's driver; libcuttle-audit.so,
#                by which `cuttle run` makes programs use it; trace/libcuda.so.1, which records calls for `cuttle trace`; libnvidia-ml.so.1 and
#                the program that it starts; ptx/bin/ptxas, a stand-in for programs that run NVIDIA's; jit/, stand-ins before NVRTC and nvJitLink,
#                not in the folder itself, since ldconfig would make them the system's
#   cuttle       the commands, their manual pages and completion
#   cuttle-dev   cuda.h and the compiler as a library, with files for pkg-config (cuttle, ptx2spv) and CMake (find_package(Cuttle))
#
# Programs look for libcuda.so.1 by name, so those that are built here need no RPATH: `cuttle run`, LD_LIBRARY_PATH, or the configuration of
# the loader (docs/install.md) says which library they get.
include(CMakePackageConfigHelpers)
set(CUTTLE_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/cuttle)
set(CUTTLE_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Cuttle)

# An absolute GNUInstallDirs path (some distributions use them) stays as it is; others are relative to the prefix, which pkg-config knows.
function(cuttle_pkgconfig_path out path)
  if(IS_ABSOLUTE "${path}")
    set(${out} "${path}" PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${path}" PARENT_SCOPE)
  endif()
endfunction()

set_target_properties(ptx2spv_core PROPERTIES OUTPUT_NAME ptx2spv EXPORT_NAME ptx2spv)
install(TARGETS cuda EXPORT CuttleTargets
  LIBRARY DESTINATION ${CUTTLE_INSTALL_LIBDIR} COMPONENT libcuttle1 NAMELINK_COMPONENT cuttle-dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CUTTLE_INSTALL_INCLUDEDIR})
install(TARGETS nvml LIBRARY DESTINATION ${CUTTLE_INSTALL_LIBDIR} COMPONENT libcuttle1 NAMELINK_SKIP)
install(TARGETS nvml_helper RUNTIME DESTINATION ${CUTTLE_INSTALL_LIBDIR} COMPONENT libcuttle1)
install(TARGETS cuttle_audit LIBRARY DESTINATION ${CUTTLE_INSTALL_LIBDIR} COMPONENT libcuttle1)
install(TARGETS ${CUTTLE_JIT_LIBRARIES} LIBRARY DESTINATION ${CUTTLE_INSTALL_LIBDIR}/jit COMPONENT libcuttle1)
install(TARGETS cuttle_interpose LIBRARY DESTINATION ${CUTTLE_INSTALL_LIBDIR}/trace COMPONENT libcuttle1 NAMELINK_SKIP)
install(PROGRAMS packaging/ptx/bin/ptxas DESTINATION ${CUTTLE_INSTALL_LIBDIR}/ptx/bin COMPONENT libcuttle1)
install(TARGETS ptx2spv_core EXPORT CuttleTargets
  ARCHIVE DESTINATION ${CUTTLE_INSTALL_LIBDIR} COMPONENT cuttle-dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS cuttle ptx2spv RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cuttle)
install(FILES include/cuda.h include/cudaProfiler.h include/cuttle/ptx2spv.h include/cuttle/workarounds.def
  DESTINATION ${CUTTLE_INSTALL_INCLUDEDIR} COMPONENT cuttle-dev)

foreach(command cuttle ptx2spv)
  install(FILES ${CUTTLE_MANUAL_FOLDER}/${command}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cuttle)
  install(FILES ${CUTTLE_MANUAL_FOLDER}/${command}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${command}
    COMPONENT cuttle)
endforeach()

# pkg-config
cuttle_pkgconfig_path(CUTTLE_PC_LIBDIR "${CUTTLE_INSTALL_LIBDIR}")
cuttle_pkgconfig_path(CUTTLE_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
# The prefix as seen from the .pc file, so that a copy of the installed tree works elsewhere.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(CUTTLE_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" CUTTLE_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(name cuttle ptx2spv)
  configure_file(packaging/${name}.pc.in ${CMAKE_BINARY_DIR}/packaging/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/packaging/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT cuttle-dev)
endforeach()

# CMake
configure_package_config_file(packaging/CuttleConfig.cmake.in ${CMAKE_BINARY_DIR}/packaging/CuttleConfig.cmake
  INSTALL_DESTINATION ${CUTTLE_INSTALL_CMAKEDIR} PATH_VARS CUTTLE_INSTALL_LIBDIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/CuttleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/CuttleConfig.cmake ${CMAKE_BINARY_DIR}/packaging/CuttleConfigVersion.cmake
  DESTINATION ${CUTTLE_INSTALL_CMAKEDIR} COMPONENT cuttle-dev)
install(EXPORT CuttleTargets NAMESPACE Cuttle:: DESTINATION ${CUTTLE_INSTALL_CMAKEDIR} COMPONENT cuttle-dev)
