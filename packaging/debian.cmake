# SPDX-License-Identifier: Apache-2.0
# CPack runs this between installing the components into folders and making packages of those: documents, compression, the search path of the
# loader, overrides of lintian. CPACK_TEMPORARY_DIRECTORY has a folder for each component.

# The date of the release as changelogs have it, at midnight.
execute_process(COMMAND date -u -R -d "${CPACK_CUTTLE_RELEASE_DATE}" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Compresses a file as policy wants it: at most, and without a time.
function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(package ${CPACK_COMPONENTS_ALL})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${package})
  set(documents ${root}/usr/share/doc/${package})
  file(COPY ${CPACK_CUTTLE_SOURCE}/copyright DESTINATION ${documents} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(WRITE ${documents}/changelog
    "cuttle (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * Packages made by CPack from the sources of this version.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${documents}/changelog)
  file(GLOB pages ${root}/usr/share/man/man1/*.1)
  foreach(page ${pages})
    compress(${page})
  endforeach()
  if(EXISTS ${CPACK_CUTTLE_SOURCE}/${package}.lintian-overrides)
    configure_file(${CPACK_CUTTLE_SOURCE}/${package}.lintian-overrides ${root}/usr/share/lintian/overrides/${package} COPYONLY)
  endif()
endforeach()
configure_file(${CPACK_CUTTLE_SOURCE}/zz-cuttle.conf.in ${CPACK_TEMPORARY_DIRECTORY}/libcuttle1${CPACK_CUTTLE_SEARCH_PATH} @ONLY)

# As dh_strip does, beyond what CPack strips.
file(GLOB_RECURSE binaries ${CPACK_TEMPORARY_DIRECTORY}/*.so.1 ${CPACK_TEMPORARY_DIRECTORY}/*-audit.so ${CPACK_TEMPORARY_DIRECTORY}/*/jit/* ${CPACK_TEMPORARY_DIRECTORY}/cuttle-nvml-helper ${CPACK_TEMPORARY_DIRECTORY}/*.a ${CPACK_TEMPORARY_DIRECTORY}/cuttle/usr/bin/*)
foreach(binary ${binaries})
  execute_process(COMMAND strip --strip-debug --remove-section=.comment ${binary} COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# Whatever the umask of who builds: folders 755; programs 755, other files 644.
execute_process(COMMAND chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_DIRECTORY}/*.so.1 ${CPACK_TEMPORARY_DIRECTORY}/*-audit.so ${CPACK_TEMPORARY_DIRECTORY}/*/jit/*)
foreach(library ${libraries})
  file(CHMOD ${library} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
