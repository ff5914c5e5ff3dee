// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of virtual shared memory. They are declared here since the table lists
// them; dsm/ reads them.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::runtime {

namespace detail {
inline constexpr std::string_view dsm_transports[] = {"map", "window", "mpi"};
inline constexpr std::string_view dsm_protocols[] = {"regional", "sequential"};
}  // namespace detail

inline constexpr Option dsm_transport_option{
    .variable = "TOMBOLO_DSM_TRANSPORT",
    .choices = detail::dsm_transports,
    .initial = detail::dsm_transports[0],
    .meaning =
        "virtual shared memory: `map`: all processes map the same pages; `window`: each "
        "caches pages of its own, over the machine of `TOMBOLO_MACHINE`; `mpi`: likewise, between "
        "hosts, over the one-sided operations of the MPI whose launcher has started the program"};

inline constexpr Option dsm_mpi_option{
    .variable = "TOMBOLO_DSM_MPI",
    .values = "a path",
    .meaning =
        "virtual shared memory, transport `mpi`: the library of that MPI. Not set: the one beside "
        "its launcher, or that the dynamic linker finds"};

inline constexpr Option dsm_protocol_option{
    .variable = "TOMBOLO_DSM_PROTOCOL",
    .choices = detail::dsm_protocols,
    .initial = detail::dsm_protocols[0],
    .meaning =
        "virtual shared memory: the consistency of cached pages "
        "([threads](model/threads.md))"};

inline constexpr Option dsm_servers_option{
    .variable = "TOMBOLO_DSM_SERVERS",
    .values = "a number from 0",
    .initial = "0",
    .meaning =
        "virtual shared memory: memory servers besides the threads, which hold the memory then; "
        "0: the threads hold it"};

inline constexpr Option dsm_memory_option{
    .variable = "TOMBOLO_DSM_MEMORY",
    .values = "a size such as 512MiB",
    .initial = "1GiB",
    .meaning = "virtual shared memory: the memory of a program, all threads together"};

inline constexpr Option dsm_cache_option{
    .variable = "TOMBOLO_DSM_CACHE",
    .values = "a size such as 512MiB",
    .initial = "256MiB",
    .meaning = "virtual shared memory: the pages that each thread caches, where it caches pages"};

inline constexpr Option dsm_trace_option{
    .variable = "TOMBOLO_DSM_TRACE",
    .values = "a path",
    .meaning =
        "virtual shared memory: at the end of the program, a trace of its faults, pages and "
        "waits is there; Perfetto opens it"};

}  // namespace tombolo::runtime
