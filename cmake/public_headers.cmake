# SPDX-License-Identifier: Apache-2.0
# Makes the one folder that users' programs include:
#
#   cmake -D ROOT=<checkout> -D TO=<folder> -P public_headers.cmake
#
# TO/tombolo/ has the public headers, the files of ROOT's folders `include/tombolo`. Headers that they
# include from the checkout lie in TO/tombolo/detail/, by their path in it, and are included by that
# path: a program's own base/ or host/ is never in their way, nor they in its. Files that are as they
# were stay untouched.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE todo RELATIVE ${ROOT} ${ROOT}/dsm/*/include/tombolo/* ${ROOT}/svp/*/include/tombolo/*)
# Translated programs of the language of families include this one.
list(APPEND todo svp/language/program.h)

# The name by which a header of the checkout is included from TO.
function(public_name header out)
  if(header MATCHES "/include/(tombolo/[^/]+)$")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  else()
    set(${out} tombolo/detail/${header} PARENT_SCOPE)
  endif()
endfunction()

set(done "")
while(todo)
  list(POP_FRONT todo header)
  if(header IN_LIST done)
    continue()
  endif()
  list(APPEND done ${header})
  file(READ ${ROOT}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"\n]+\"" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included ${include})
    public_name(${included} name)
    string(REPLACE "${include}" "#include \"${name}\"" text "${text}")
    list(APPEND todo ${included})
  endforeach()
  public_name(${header} name)
  set(before "")
  if(EXISTS ${TO}/${name})
    file(READ ${TO}/${name} before)
  endif()
  if(NOT "${before}" STREQUAL "${text}")
    file(WRITE ${TO}/${name} "${text}")
  endif()
endwhile()
