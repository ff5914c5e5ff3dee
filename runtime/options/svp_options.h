// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of families of threads. They are declared here since the table lists them;
// svp/ reads them.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::runtime {

inline constexpr Option svp_workers_option{
    .variable = "TOMBOLO_SVP_WORKERS",
    .values = "a number from 1 to 1024",
    .meaning =
        "families: the workers of the default place ([families](model/families.md)). Not set: one "
        "for each processor"};

inline constexpr Option svp_trace_option{
    .variable = "TOMBOLO_SVP_TRACE",
    .values = "a path",
    .meaning =
        "families: at the end of the program, a trace of its families, their places, and the "
        "reads of channels that waited is there; Perfetto opens it. Each of several processes "
        "writes one, with its number behind the path"};

}  // namespace tombolo::runtime
