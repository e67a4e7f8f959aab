# SPDX-License-Identifier: Apache-2.0
# Debian packages: `cpack -G DEB` makes libcuttle1, cuttle and cuttle-dev from the components of install.cmake; ci/package does it for Debian's
# folders, with the preset `package`. Dependencies on libraries are those that dpkg-shlibdeps finds; packages that are built on Debian 12 also
# install on Debian 13. What Debian's policy asks for besides the installed files is made by debian.cmake.
#
# No package replaces or conflicts with a driver of NVIDIA's. The folder of libcuda.so.1 becomes the last one in which the loader looks, so that
# any other libcuda.so.1 comes first, and the administrator decides (docs/install.md). An alternative (update-alternatives) for libcuda.so.1
# itself is out of the question: in Debian's packages of NVIDIA's driver that link belongs to the alternative `nvidia`, and if another one owned
# it, the driver could not be installed any more.
set(CUTTLE_PACKAGE_CONTACT "Cuttle developers <cuttle@users.noreply.github.com>" CACHE STRING "Maintainer of the Debian packages: the name and the address of who distributes them")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cuttle)
set(CPACK_PACKAGE_CONTACT "${CUTTLE_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_COMPONENTS_ALL libcuttle1 cuttle cuttle-dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/debian.cmake)
set(same_version "(= ${PROJECT_VERSION})")

# Vulkan's loader is opened at run time; a driver is recommended, since without any there is no device.
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_NAME libcuttle1)
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_DEPENDS "libvulkan1")
# What packages of programs, such as python3-torch-cuda, depend on: a driver for CUDA 13.0, which NVIDIA's are from 580.65 on.
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_PROVIDES "libcuda.so.1 (= 580.65)")
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd")
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_SUGGESTS "cuttle, pocl-opencl-icd, libsnappy1v5")
set(CPACK_DEBIAN_LIBCUTTLE1_DESCRIPTION "CUDA driver API through Vulkan and OpenCL
A libcuda.so.1 that runs CUDA programs on devices that are not NVIDIA's:
it compiles the PTX in them to SPIR-V with a compiler of its own. Any device
with a driver for Vulkan 1.3 or OpenCL 3.0 will do, CPUs included.
.
The library is in a folder of its own, and is used by default only where no
other libcuda.so.1 is installed.")

set(CPACK_DEBIAN_CUTTLE_PACKAGE_NAME cuttle)
set(CPACK_DEBIAN_CUTTLE_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_CUTTLE_PACKAGE_DEPENDS "libcuttle1 ${same_version}")
set(CPACK_DEBIAN_CUTTLE_DESCRIPTION "run and examine CUDA programs on Vulkan and OpenCL
The command cuttle lists devices, and works with CUDA programs and their
code; ptx2spv compiles PTX to SPIR-V.")

set(CPACK_DEBIAN_CUTTLE-DEV_PACKAGE_NAME cuttle-dev)
set(CPACK_DEBIAN_CUTTLE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CUTTLE-DEV_PACKAGE_DEPENDS "libcuttle1 ${same_version}")
set(CPACK_DEBIAN_CUTTLE-DEV_DESCRIPTION "CUDA driver API through Vulkan and OpenCL - development files
The header cuda.h, the compiler from PTX to SPIR-V as a static library with
its header, and files for pkg-config and CMake.")

# Control files. Each package has checksums; libcuttle1 has the loader's cache brought up to date, and a file that the administrator may change.
set(CPACK_CUTTLE_SEARCH_PATH /etc/ld.so.conf.d/zz-cuttle.conf)
file(WRITE ${CMAKE_BINARY_DIR}/packaging/triggers "activate-noawait ldconfig\n")
file(WRITE ${CMAKE_BINARY_DIR}/packaging/conffiles "${CPACK_CUTTLE_SEARCH_PATH}\n")
set(CPACK_DEBIAN_LIBCUTTLE1_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/packaging/triggers ${CMAKE_BINARY_DIR}/packaging/conffiles)

# For debian.cmake.
set(CPACK_CUTTLE_SOURCE ${CMAKE_SOURCE_DIR}/packaging)
set(CPACK_CUTTLE_LIBDIR /usr/${CUTTLE_INSTALL_LIBDIR})
set(CPACK_CUTTLE_RELEASE_DATE ${CUTTLE_RELEASE_DATE})
include(CPack)
