// SPDX-License-Identifier: Apache-2.0
#include "host/memory/program_variables.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <limits>

#include "base/rounding.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

constexpr AddressRange nothing{std::numeric_limits<std::uint64_t>::max(), 0};

AddressRange memory_of(const dl_phdr_info& object, const ElfW(Phdr) & header) {
  const std::uint64_t low = object.dlpi_addr + header.p_vaddr;
  return {low, low + header.p_memsz};
}

AddressRange read_only_part(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (object.dlpi_phdr[i].p_type == PT_GNU_RELRO) return memory_of(object, object.dlpi_phdr[i]);
  return {};
}

// The executable comes first: a result other than 0 ends the walk.
int look_at_executable(dl_phdr_info* object, std::size_t, void* found) {
  auto& variables = *static_cast<AddressRange*>(found);
  const AddressRange relro = read_only_part(*object);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    AddressRange segment = memory_of(*object, header);
    if (relro.low <= segment.low && segment.low < relro.high) segment.low = relro.high;
    if (segment.empty()) continue;
    variables.low = std::min(variables.low, segment.low);
    variables.high = std::max(variables.high, segment.high);
  }
  return 1;
}

int add_thread_local(dl_phdr_info* object, std::size_t, void* sum) {
  for (int i = 0; i < object->dlpi_phnum; ++i)
    if (object->dlpi_phdr[i].p_type == PT_TLS)
      *static_cast<std::size_t*>(sum) +=
          object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
  return 0;
}

}  // namespace

Status program_variables(AddressRange& out) {
  AddressRange found = nothing;
  dl_iterate_phdr(&look_at_executable, &found);
  out = {};
  if (found.empty()) return {};
  const std::uint64_t page = page_bytes();
  found = {found.low / page * page, round_up(found.high, page)};
  std::vector<Mapping> mappings;
  TOMBOLO_TRY(read_mappings(mappings));
  for (const Mapping& mapping : mappings)
    if (found.overlaps(mapping.range) && !mapping.access.starts_with("rw-p"))
      return Status::unsupported(
          fmt::format("memory {} lies between the program's variables", mapping.access));
  out = found;
  return {};
}

std::size_t thread_local_bytes() {
  std::size_t sum = 0;
  dl_iterate_phdr(&add_thread_local, &sum);
  return sum;
}

}  // namespace tombolo::host
