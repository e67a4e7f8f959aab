# SPDX-License-Identifier: Apache-2.0
# libnvidia-ml.so.1, and the program that it starts to ask drivers. Both are in the folder of libcuda.so.1.
file(GLOB nvml_sources CONFIGURE_DEPENDS src/nvml/*.c)
add_library(nvml_objects OBJECT ${nvml_sources})
target_include_directories(nvml_objects PRIVATE src)
target_link_libraries(nvml_objects PRIVATE cuttle_installed)
target_compile_definitions(nvml_objects PRIVATE CUTTLE_VERSION="${PROJECT_VERSION}")

add_executable(nvml_helper src/nvml/helper/nvml_helper.c src/nvml/facts.c)
target_link_libraries(nvml_helper PRIVATE cuttle_installed cuda_static)
set_target_properties(nvml_helper PROPERTIES OUTPUT_NAME cuttle-nvml-helper RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})

set(NVML_EXPORT_MAP ${CMAKE_SOURCE_DIR}/src/nvml/libnvidia-ml.map)
add_library(nvml SHARED $<TARGET_OBJECTS:nvml_objects>)
set_target_properties(nvml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1 VERSION 1 LINK_DEPENDS ${NVML_EXPORT_MAP})
target_link_libraries(nvml PRIVATE cuttle_options Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(nvml PRIVATE -Wl,--version-script=${NVML_EXPORT_MAP} -Wl,-z,defs -Wl,-Bsymbolic)
add_dependencies(nvml nvml_helper cuda) # at run time

# The code of the library, for the command and for white-box tests.
add_library(nvml_static INTERFACE)
target_sources(nvml_static INTERFACE $<TARGET_OBJECTS:nvml_objects>)
target_include_directories(nvml_static INTERFACE src)
target_link_libraries(nvml_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
