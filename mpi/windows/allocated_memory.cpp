// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/allocated_memory.h"

#include <charconv>
#include <string_view>

#include "host/images/own_memory.h"
#include "host/memory/large_blocks.h"
#include "host/memory/page.h"
#include "host/mpi/host.h"
#include "mpi/processes/job.h"
#include "runtime/engines/engines.h"

namespace tombolo::mpi {
namespace {

bool maps_memory_of_programs(const runtime::Options& options) {
  return !options.disabled && options.remap &&
         runtime::served({options.machine, options.native_atomics()}).traits().maps_parts;
}

// When the library is loaded, before the program has blocks: no call of MPI, and not the job, which
// makes some.
[[gnu::constructor]] void prepare_heap() {
  if (maps_memory_of_programs(runtime::read_environment())) host::take_large_blocks_from_heap();
}

bool asks_for_more_than_pages(MPI_Info info) {
  if (info == MPI_INFO_NULL) return false;
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int found = 0;
  if (host().Info_get(info, "mpi_minimum_memory_alignment", MPI_MAX_INFO_VAL, value, &found) !=
          MPI_SUCCESS ||
      found == 0)
    return false;
  const std::string_view text = value;
  std::uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes > host::page_bytes();
}

}  // namespace

void* allocate_mappable(MPI_Aint bytes, MPI_Info info) {
  if (bytes <= 0 || !check_host().ok() || !maps_memory_of_programs(job().options()) ||
      asks_for_more_than_pages(info))
    return nullptr;
  return host::own_memory().allocate(static_cast<std::uint64_t>(bytes));
}

bool free_mappable(void* memory) { return host::own_memory().free(memory); }

}  // namespace tombolo::mpi
