// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/table.h"

#include <array>
#include <vector>

#include "backends/scc/options.h"
#include "host/options.h"
#include "runtime/options/dsm_options.h"
#include "runtime/options/pthreads_options.h"
#include "runtime/options/svp_options.h"
#include "sync/locks/families.h"

namespace tombolo::runtime {
namespace {

constexpr std::string_view atomics_choices[] = {"full", "none"};
constexpr std::string_view on_off[] = {"on", "off"};
constexpr std::string_view on_findings_choices[] = {"fail", "report"};
constexpr std::string_view one[] = {"1"};
constexpr std::string_view statistics_choices[] = {"1", "text", "json", "off", "0"};

// Six lists, joined in the order of the documents: the most wanted first.

constexpr auto of_windows = std::to_array<OptionRow>({
    {.option = {.variable = "TOMBOLO_PASSIVE_SYNC",
                .info_key = "tombolo_passive_sync",
                .choices = sync::lock_family_names,
                .initial = sync::lock_family_names[0],
                .meaning = "the locks of passive target epochs "
                           "([catalogue](../sync/CATALOGUE.md))"},
     .field = &Options::locks},
    {.option = {.variable = "TOMBOLO_BACKOFF",
                .info_key = "tombolo_backoff",
                .choices = on_off,
                .initial = "on",
                .meaning = "whether a process that waits for a lock of another process's memory "
                           "pauses longer after each attempt"},
     .field = &Options::backoff},
    {.option = {.variable = "TOMBOLO_READER_BIAS",
                .info_key = "tombolo_reader_bias",
                .choices = on_off,
                .initial = "on",
                .meaning = "whether shared best-effort locks may be announced at their holder, as "
                           "long as no process writes ([catalogue](../sync/CATALOGUE.md))"},
     .field = &Options::reader_bias},
    {.option = {.variable = "TOMBOLO_REMAP",
                .info_key = "tombolo_remap",
                .choices = on_off,
                .initial = "on",
                .meaning = "`on`: `MPI_Win_create` on `coherent` makes the memory mappable by the "
                           "other processes where it can ([CAVEATS](../CAVEATS.md)), and "
                           "`MPI_Alloc_mem` gives memory that is; `off`: neither"},
     .field = &Options::remap},
});

constexpr auto of_machines = std::to_array<OptionRow>({
    {.option = {.variable = "TOMBOLO_POOL",
                .values = "a path",
                .meaning = "where `flushed` gets its memory: a DAX device, a file (also one that "
                           "several hosts or containers map) or a directory"},
     .field = &Options::pool},
    {.option = {.variable = "TOMBOLO_ATOMICS",
                .choices = atomics_choices,
                .meaning = "`none`: build the atomics from loads and stores. Not set: `none` for "
                           "windows over several hosts, else `full`"},
     .field = &Options::native_atomics,
     .asked = &Options::atomics_asked},
    {.option = host::write_watch_option},
    {.option = host::flush_option},
    {.option = host::segment_option},
    {.option = {.variable = "TOMBOLO_SEED",
                .values = "a number from 0",
                .initial = "1",
                .meaning = "`stale`: the seed of its random choices"},
     .field = &Options::seed},
    {.option = {.variable = "TOMBOLO_EVICTIONS",
                .values = "a number from 0",
                .initial = "50",
                .meaning = "`stale`: one eviction in so many operations; 0: none"},
     .field = &Options::evictions},
    {.option = {.variable = "TOMBOLO_ON_FINDINGS",
                .choices = on_findings_choices,
                .initial = "report",
                .meaning =
                    "`stale`: `fail`: processes of a window in which the machine saw a mistake of "
                    "the program exit with 88 where they would exit with 0; `report`: as the "
                    "program says. `tombolo run --machine stale` sets `fail`"},
     .field = &Options::fail_on_findings},
});

constexpr auto of_programs = std::to_array<OptionRow>({
    {.option = {.variable = "TOMBOLO_STATS",
                .choices = statistics_choices,
                .initial = "off",
                .meaning = "at the end of the program (`MPI_Finalize`), on stderr: the windows "
                           "served and those forwarded, with the reasons, and the processors that "
                           "the job has here, or the counts of virtual shared memory or of "
                           "families; `1` and `text` for people, `json` for programs"},
     .field = &Options::statistics},
    {.option = {.variable = "TOMBOLO_DISABLE",
                .choices = one,
                .meaning = "forward everything to the host MPI"},
     .field = &Options::served,
     .negated = true},
    {.option = {.info_key = "mpi_accumulate_granularity",
                .values = "a number of bytes",
                .meaning = "bytes of target memory that one lock of an accumulate covers; 1: each "
                           "element by itself"},
     .field = &Options::atomic_bytes},
    {.option = {.info_key = "mpi_minimum_memory_alignment",
                .values = "a power of 2 to 1073741824",
                .meaning = "as the standard has it: the memory that `MPI_Win_allocate` and "
                           "`MPI_Win_allocate_shared` return starts at a multiple of it, in any "
                           "case on a page; contiguous shared memory that of the first process"},
     .field = &Options::alignment},
    {.option = {.variable = "TOMBOLO_SHARED_NONCONTIG",
                .info_key = "alloc_shared_noncontig",
                .choices = switch_choices,
                .initial = "false",
                .meaning = "as the standard has it: each process's part of "
                           "`MPI_Win_allocate_shared` starts on a page. The variable is for "
                           "programs that do not give the key and ask for the place of each part, "
                           "on memory without coherence ([CAVEATS](../CAVEATS.md))"},
     .field = &Options::shared_apart},
    {.option = scc::chips_option, .reader = Reader::chip},
});

constexpr auto of_shared_memory = std::to_array<OptionRow>({
    {.option = dsm_transport_option},
    {.option = dsm_protocol_option},
    {.option = dsm_mpi_option},
    {.option = dsm_servers_option},
    {.option = dsm_memory_option},
    {.option = dsm_cache_option},
    {.option = dsm_trace_option},
});

constexpr auto of_unchanged_programs = std::to_array<OptionRow>({
    {.option = world_processes_option},
    {.option = world_heap_option},
});

constexpr auto of_families = std::to_array<OptionRow>({
    {.option = svp_workers_option},
    {.option = svp_stack_option},
    {.option = svp_transport_option},
    {.option = svp_memory_option},
    {.option = svp_share_option},
    {.option = svp_mpi_option},
    {.option = svp_trace_option},
});

constexpr auto of_the_command = std::to_array<OptionRow>({
    {.option = {.variable = "TOMBOLO_HOME",
                .values = "a folder",
                .meaning = "holds the MPIs that the command installs, and all that it compiles and "
                           "fetches. Not set: the checkout, or the user's cache"},
     .reader = Reader::command},
    {.option = {.variable = "TOMBOLO_RESULTS",
                .values = "a folder",
                .meaning = "where results are written. Not set: `results` in the checkout, or "
                           "where the command is called"},
     .reader = Reader::command},
    {.option = {.variable = "TOMBOLO_LIB_DIR",
                .values = "a folder",
                .meaning = "the libraries and programs to use instead of those that were built or "
                           "installed"},
     .reader = Reader::command},
    {.option = {.variable = "TOMBOLO_MPICH",
                .values = "a folder",
                .meaning =
                    "where the MPI called `mpich` is installed. Not set: in `.env`, or beside "
                    "the command"},
     .reader = Reader::command},
    {.option = {.variable = "TOMBOLO_OPENMPI",
                .values = "a folder",
                .meaning = "the same for `openmpi`"},
     .reader = Reader::command},
});

std::vector<OptionRow> joined() {
  std::vector<OptionRow> all{
      {.option = {.variable = "TOMBOLO_MACHINE",
                  .info_key = "tombolo_machine",
                  .choices = machine_names(),
                  .initial = machine_names()[0],
                  .meaning = "the machine that windows are on, and the transport `window` of "
                             "virtual shared memory"},
       .field = &Options::machine}};
  const auto append = [&](const auto& rows) { all.insert(all.end(), rows.begin(), rows.end()); };
  append(of_windows);
  append(of_machines);
  append(of_programs);
  append(of_shared_memory);
  append(of_unchanged_programs);
  append(of_families);
  append(of_the_command);
  return all;
}

}  // namespace

std::span<const OptionRow> option_table() {
  static const std::vector<OptionRow> all = joined();
  return all;
}

}  // namespace tombolo::runtime
