// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of this host: how shared memory is made and written back.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::host {

namespace detail {
inline constexpr std::string_view segment_ways[] = {"memfd", "nameless", "named"};
inline constexpr std::string_view watch_choices[] = {"on", "off"};
}  // namespace detail

inline constexpr Option segment_option{
    .variable = "TOMBOLO_SEGMENT",
    .choices = detail::segment_ways,
    .meaning =
        "how memory shared by the processes of one host is made: memory without a file, a "
        "file of `/dev/shm` without a name, or one with a name until all have opened it. Not "
        "set: the first of these that works"};

inline constexpr Option flush_option{
    .variable = "TOMBOLO_FLUSH",
    .values =
        "auto, stream, or one of the processor's instructions (x86: clwb, clflushopt, "
        "clflush; Arm: cvac)",
    .initial = "auto",
    .meaning =
        "`flushed`: how lines are written back; `auto` measures once for each process which "
        "is quickest, `stream` prefers streaming stores"};

inline constexpr Option write_watch_option{
    .variable = "TOMBOLO_WRITE_WATCH",
    .choices = detail::watch_choices,
    .initial = "on",
    .meaning =
        "`flushed`: `off` publishes whole regions, not only the pages that were written to "
        "([CAVEATS](../CAVEATS.md))"};

}  // namespace tombolo::host
