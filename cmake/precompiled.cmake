# SPDX-License-Identifier: Apache-2.0
# The headers of the standard library, of fmt and of GoogleTest, parsed once for all units that have
# the same options: parsing them takes longer than the rest of most units. Not for a build without
# tests, and not under a compiler cache (a launcher), which would find nothing again. A unit includes
# all that it uses nevertheless: clang-tidy checks the sources without this, and a build under a cache
# the tests as well.
set(tombolo_precompiled <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <functional> <map>
                        <memory> <mutex> <numeric> <optional> <string> <string_view> <thread>
                        <utility> <vector> <fmt/format.h>)

# The target `owner` that holds them, and the further headers, for others with the further options.
function(tombolo_precompile_for owner)
  cmake_parse_arguments(ARG "" "" "OPTIONS;LIBRARIES;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
  if(owner MATCHES "tests")
    # An executable as test programs are: its code is position-independent in another way.
    add_executable(${owner} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cpp)
  else()
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cpp)
  endif()
  target_compile_options(${owner} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${owner} PRIVATE tombolo_includes ${ARG_LIBRARIES})
  target_precompile_headers(${owner} PRIVATE ${tombolo_precompiled} ${ARG_HEADERS})
endfunction()

if(TOMBOLO_TESTS AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  tombolo_precompile_for(tombolo_precompiled_libraries)
  foreach(level -O0 -O1)
    tombolo_precompile_for(tombolo_precompiled_tests${level} OPTIONS ${level} LIBRARIES GTest::gtest
                           HEADERS <gtest/gtest.h>)
  endforeach()
endif()

# Lets the target take them from the target `tombolo_precompiled_KIND`, if that is there.
function(tombolo_precompile target kind)
  if(TARGET tombolo_precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM tombolo_precompiled_${kind})
  endif()
endfunction()
