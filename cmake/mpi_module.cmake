# SPDX-License-Identifier: Apache-2.0
# A module that speaks the handles of one MPI, which is found at run time (host/mpi/): it is loaded by
# programs and libraries that know no MPI. SOURCES are its own.
function(tombolo_mpi_module name include_folder)
  if("${include_folder}" STREQUAL "")
    message(STATUS "tombolo: no header given for ${name}; that module is not built")
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(${name} SHARED ${ARG_SOURCES} ${TOMBOLO_HOST_MPI_SOURCES})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${name} SYSTEM PRIVATE ${include_folder})
  target_link_libraries(${name} PRIVATE tombolo_headers tombolo_runtime ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL
                      ${tombolo_no_undefined})
endfunction()
