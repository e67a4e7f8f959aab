# SPDX-License-Identifier: Apache-2.0
# Shaders of tests and examples are written in SPIR-V assembly, so that no shader compiler is needed.
#
# cuttle_spirv(SOURCE OUTPUT TARGET)   assembles SOURCE for TARGET (spv1.3) and validates it; CUTTLE_SPIRV_AS is empty without spirv-tools
find_program(CUTTLE_SPIRV_AS spirv-as DOC "SPIR-V assembler, for the shaders of tests and examples")
find_program(CUTTLE_SPIRV_VAL spirv-val DOC "SPIR-V validator, for the shaders of tests and examples")
mark_as_advanced(CUTTLE_SPIRV_AS CUTTLE_SPIRV_VAL)

function(cuttle_spirv source output target)
  get_filename_component(folder ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CUTTLE_SPIRV_AS} --target-env ${target} ${source} -o ${output}
    COMMAND ${CUTTLE_SPIRV_VAL} --target-env ${target} ${output}
    DEPENDS ${source}
    COMMENT "SPIR-V of ${source}"
    VERBATIM)
endfunction()
