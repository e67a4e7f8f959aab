# SPDX-License-Identifier: Apache-2.0
# Generates the export map of libcuda.so.1 from entry_points.def with the C preprocessor.
# Sets CUTTLE_EXPORT_MAP, to link with, and CUTTLE_GENERATED_API_SOURCES, to add to the library's sources.
set(CUTTLE_EXPORT_MAP ${CMAKE_BINARY_DIR}/generated/libcuda.map)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${CUTTLE_EXPORT_MAP}
  COMMAND ${CMAKE_C_COMPILER} -E -P -undef -x c -I${CMAKE_SOURCE_DIR}/src/api -o ${CUTTLE_EXPORT_MAP}
          ${CMAKE_SOURCE_DIR}/src/api/libcuda.map.in
  DEPENDS ${CMAKE_SOURCE_DIR}/src/api/libcuda.map.in ${CMAKE_SOURCE_DIR}/src/api/entry_points.def
  COMMENT "Export map of libcuda.so.1"
  VERBATIM)
set(CUTTLE_GENERATED_API_SOURCES ${CUTTLE_EXPORT_MAP})
