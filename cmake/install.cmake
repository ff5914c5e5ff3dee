# SPDX-License-Identifier: Apache-2.0
# The files of the Python package beside its modules, below tombolo/. All are of the component
# `tombolo`; the target tombolo_wheel builds them. Every build has these rules, but for those with a
# sanitizer or of chosen folders: a wheel may take its files from a build that is there already.

# The experiments on the simulated chip take about as long to build as all the rest: they are in the
# package only on demand.
option(TOMBOLO_WITH_SCC "Add the experiments on the simulated chip to the wheel" OFF)
set(TOMBOLO_BUILT "" CACHE PATH "A build of these sources, from which a wheel takes its files; empty: it builds them")

if(TOMBOLO_SANITIZER OR NOT TOMBOLO_ONLY STREQUAL "")
  return()
endif()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tombolo)
if(NOT TOMBOLO_BUILT STREQUAL "")
  cmake_path(ABSOLUTE_PATH TOMBOLO_BUILT OUTPUT_VARIABLE built)
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${built}\" --component tombolo --strip
                                        --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)")
  # The rules below are checked, but not followed.
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME not_installed)
endif()

add_custom_target(tombolo_wheel)
# A build that is not for a wheel may lack a target: it was given no header of that MPI.
function(tombolo_install_targets)
  foreach(name ${ARGN})
    if(NOT TARGET ${name} AND NOT SKBUILD)
      continue()
    endif()
    install(TARGETS ${name} RUNTIME DESTINATION tombolo/lib LIBRARY DESTINATION tombolo/lib
            ARCHIVE DESTINATION tombolo/lib)
    if(TOMBOLO_BUILT STREQUAL "")
      add_dependencies(tombolo_wheel ${name})
    endif()
  endforeach()
endfunction()

# Known to the command even where the experiments are not built.
file(GLOB papers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/experiments/*/*.toml)
install(FILES ${papers} DESTINATION tombolo/data/scc)
# The table of options, which the command reads as well.
install(FILES ${CMAKE_SOURCE_DIR}/base/options.toml DESTINATION tombolo/data)
# tombolo-locks lists the lock families for measurements.
tombolo_install_targets(tombolo_mpi_mpich tombolo_mpi_openmpi tombolo_mpi_abi tombolo-locks)
# Virtual shared memory: the libraries that programs are linked to or run with, the header, and the
# launcher.
tombolo_install_targets(tombolo_dsm tombolo_pthread tombolo_pthread_hosts tombolo-dsm tombolo_dsm_mpich tombolo_dsm_openmpi)
# The one folder that users' programs include.
install(DIRECTORY ${CMAKE_BINARY_DIR}/include/tombolo DESTINATION tombolo/include)
if(TOMBOLO_BUILT STREQUAL "")
  add_dependencies(tombolo_wheel tombolo_public_headers)
endif()
# The compiler of threaded programs, where LLVM is.
if(TARGET tombolo_stores)
  tombolo_install_targets(tombolo_stores tombolo_dsm_calls)
endif()
# Families of threads, where Boost.Context is: the archive.
if(TARGET tombolo_families)
  tombolo_install_targets(tombolo_families tombolo_svp_c tombolo-svp tombolo_svp_mpich tombolo_svp_openmpi)
  install(FILES ${CMAKE_BINARY_DIR}/svp/tombolo_families.flags DESTINATION tombolo/lib)
endif()
if(TOMBOLO_WITH_SCC)
  if(NOT TARGET tombolo-scc)
    message(FATAL_ERROR "TOMBOLO_WITH_SCC needs Boost.Context, toml++, CLI11 and nlohmann's JSON: on Debian "
            "libboost-context-dev, libtomlplusplus-dev, libcli11-dev, nlohmann-json3-dev")
  endif()
  tombolo_install_targets(tombolo-scc)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/backends/scc/chips DESTINATION tombolo/lib)
endif()
