// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of an unchanged program whose threads run in processes. They are declared
// here since the table lists them; pthreads/program/ reads them.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::runtime {

inline constexpr Option world_processes_option{
    .variable = "TOMBOLO_DSM_PROCESSES",
    .values = "a number from 2",
    .initial = "128",
    .meaning =
        "a program whose threads run in processes: how many may run at once, the first one "
        "included; `pthread_create` fails with `EAGAIN` beyond. `window`: 16 if not set"};

inline constexpr Option world_heap_option{
    .variable = "TOMBOLO_DSM_HEAP",
    .values = "a size such as 512MiB",
    .meaning =
        "the same: the memory of its heap. Not set: that of `TOMBOLO_DSM_MEMORY`; else half of the "
        "memory that is free, an eighth with `window` and `mpi`"};

}  // namespace tombolo::runtime
