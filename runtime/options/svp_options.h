// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of families of threads. They are declared here since the table lists them;
// svp/ reads them.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::runtime {

namespace detail {
inline constexpr std::string_view svp_transports[] = {"best", "stream", "direct", "buffer",
                                                      "remap"};
inline constexpr std::string_view svp_shares[] = {"host", "none"};
}  // namespace detail

inline constexpr Option svp_workers_option{
    .variable = "TOMBOLO_SVP_WORKERS",
    .values = "a number from 1 to 1024",
    .meaning =
        "families: the workers of the default place ([families](model/families.md)). Not set: one "
        "for each processor, divided by the processes of the program"};

inline constexpr Option svp_stack_option{
    .variable = "TOMBOLO_SVP_STACK",
    .values = "a size in KiB from 16 to 1048576",
    .initial = "256",
    .meaning =
        "families: the stack of a thread that blocks in a channel, or runs beside one that waits "
        "([families](model/families.md#costs)); of addresses: memory is taken as it is used"};

inline constexpr Option svp_transport_option{
    .variable = "TOMBOLO_SVP_TRANSPORT",
    .choices = detail::svp_transports,
    .initial = detail::svp_transports[0],
    .meaning =
        "families: how the arrays of a family in another process travel "
        "([families](model/families.md)): `best`: by the address where memory is shared, else few "
        "bytes with the request and many as `direct`; `stream`: all in one buffer, in the form of "
        "XDR; `direct`: each from memory to memory; `buffer`: each in messages; `remap`: by the "
        "address where memory is shared, else as `direct`"};

inline constexpr Option svp_memory_option{
    .variable = "TOMBOLO_SVP_MEMORY",
    .values = "a size in MiB from 1 to 65536",
    .initial = "64",
    .meaning =
        "families: the shared memory of each process, from which arrays are allocated that "
        "go to other processes by their address"};

inline constexpr Option svp_share_option{
    .variable = "TOMBOLO_SVP_SHARE",
    .choices = detail::svp_shares,
    .initial = detail::svp_shares[0],
    .meaning =
        "families, in processes that the launcher of an MPI has started: `host`: those of one host "
        "share memory; `none`: all speak by MPI, as if each had a host of its own"};

inline constexpr Option svp_mpi_option{
    .variable = "TOMBOLO_SVP_MPI",
    .values = "a path",
    .meaning =
        "families, in processes that the launcher of an MPI has started: the library of that MPI. "
        "Not set: the one beside its launcher, or that the dynamic linker finds"};

inline constexpr Option svp_trace_option{
    .variable = "TOMBOLO_SVP_TRACE",
    .values = "a path",
    .meaning =
        "families: at the end of the program, a trace of its families, their places, and the "
        "reads of channels that waited is there; Perfetto opens it. Each of several processes "
        "writes one, with its number behind the path"};

}  // namespace tombolo::runtime
