# SPDX-License-Identifier: Apache-2.0
# Finds everything that Cuttle builds with, as imported targets. Debian 12 names the oldest versions that we support;
# what is newer than those headers is declared by us (src/backend_vk/vulkan_compat.h).
#
#   target            Debian package        minimum   used by
#   Vulkan::Headers   libvulkan-dev         1.3.239   backend_vk (headers only: the loader is opened at run time, by volk)
#   volk::headers     libvulkan-volk-dev    1.3.239   backend_vk
#   SPIRV::Headers    spirv-headers         1.6.1     ptx2spv
#   SPIRV::Tools      spirv-tools           2023.1    the command cuttle, tests (optional)
#   OpenCL::Headers   opencl-headers        3.0~2023  backend_cl (optional; headers only: the loader is opened at run time)
#   uthash::uthash    uthash-dev            2.3       core
#   xxHash::headers   libxxhash-dev         0.8.1     core (disk cache; headers only: compiled into core/base/hash.c)
#   LZ4::LZ4          liblz4-dev            1.9.4     core (fat binaries, decompression)
#   Zstd::Zstd        libzstd-dev           1.5.4     core (fat binaries)
#   ZLIB::ZLIB        zlib1g-dev            1.2.13    core (decompression)
#   (none)            libsnappy1v5          1.1.9     core (decompression; optional, opened at run time: core/base/decompressor.h), tests (likewise)
#   cmocka::cmocka    libcmocka-dev         1.1.5     tests (optional)
find_package(PkgConfig)

function(cuttle_header_target target header package)
  string(MAKE_C_IDENTIFIER "CUTTLE_${target}_INCLUDE" cache)
  find_path(${cache} ${header})
  mark_as_advanced(${cache})
  if(${cache} AND NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${${cache}}")
  elseif(NOT ${cache})
    set(CuttleDependencies_MISSING "${CuttleDependencies_MISSING} ${header} (Debian: ${package})" PARENT_SCOPE)
  endif()
endfunction()

set(CuttleDependencies_MISSING "")
cuttle_header_target(Vulkan::Headers vulkan/vulkan_core.h libvulkan-dev)
cuttle_header_target(volk::headers volk.h libvulkan-volk-dev)
cuttle_header_target(SPIRV::Headers spirv/unified1/spirv.h spirv-headers)
cuttle_header_target(uthash::uthash uthash.h uthash-dev)
cuttle_header_target(xxHash::headers xxhash.h libxxhash-dev)

# Optional ones: what needs them is left out, and says so.
find_path(CUTTLE_OpenCL__Headers_INCLUDE CL/cl.h)
mark_as_advanced(CUTTLE_OpenCL__Headers_INCLUDE)
if(CUTTLE_OpenCL__Headers_INCLUDE AND NOT TARGET OpenCL::Headers)
  add_library(OpenCL::Headers INTERFACE IMPORTED GLOBAL)
  set_target_properties(OpenCL::Headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CUTTLE_OpenCL__Headers_INCLUDE}")
endif()
function(cuttle_library_target target header)
  string(MAKE_C_IDENTIFIER "CUTTLE_${target}" cache)
  find_path(${cache}_INCLUDE ${header})
  find_library(${cache}_LIBRARY NAMES ${ARGN})
  mark_as_advanced(${cache}_INCLUDE ${cache}_LIBRARY)
  if(${cache}_INCLUDE AND ${cache}_LIBRARY AND NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${cache}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${cache}_INCLUDE}")
  endif()
endfunction()
function(cuttle_required_library target header package)
  cuttle_library_target(${target} ${header} ${ARGN})
  if(NOT TARGET ${target})
    set(CuttleDependencies_MISSING "${CuttleDependencies_MISSING} ${header} (Debian: ${package})" PARENT_SCOPE)
  endif()
endfunction()
cuttle_required_library(LZ4::LZ4 lz4.h liblz4-dev lz4)
cuttle_required_library(Zstd::Zstd zstd.h libzstd-dev zstd)
cuttle_required_library(ZLIB::ZLIB zlib.h zlib1g-dev z)
cuttle_library_target(SPIRV::Tools spirv-tools/libspirv.h SPIRV-Tools-shared SPIRV-Tools)
if(TARGET SPIRV::Tools AND CUTTLE_SPIRV__Tools_LIBRARY MATCHES "\\.a$") # Debian 12: a static C++ library only
  set_property(TARGET SPIRV::Tools PROPERTY INTERFACE_LINK_LIBRARIES stdc++ m)
endif()
cuttle_library_target(cmocka::cmocka cmocka.h cmocka)
if(TARGET cmocka::cmocka AND EXISTS "${CUTTLE_cmocka__cmocka_INCLUDE}/cmocka_version.h") # 2.0, which has other macros for some of those of 1.1
  set_property(TARGET cmocka::cmocka PROPERTY INTERFACE_COMPILE_OPTIONS -Wno-deprecated-declarations)
endif()
cuttle_library_target(OpenCL::OpenCL CL/cl.h OpenCL)
cuttle_library_target(PNG::PNG_C png.h png)

include(FindPackageHandleStandardArgs)
if(CuttleDependencies_MISSING)
  set(CuttleDependencies_OK FALSE)
else()
  set(CuttleDependencies_OK TRUE)
endif()
find_package_handle_standard_args(CuttleDependencies REQUIRED_VARS CuttleDependencies_OK
  REASON_FAILURE_MESSAGE "not found:${CuttleDependencies_MISSING}. On Debian ci/setup installs them.")
