// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/program_facts.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/rounding.h"
#include "host/memory/page.h"
#include "host/memory/program_variables.h"

namespace tombolo::dsm {
namespace {

// Room for the C library's part of a thread: its descriptor, thread-local memory, and the calls
// that end it.
std::size_t base_bytes() {
  static const std::size_t bytes =
      round_up(host::thread_local_bytes() + (std::size_t{1} << 20), host::page_bytes());
  return bytes;
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// WLL1
std::vector<std::byte*> stack_ends(const ProgramLayout& layout) {
  std::vector<std::byte*> pages = {pointer(layout.variables.high)};
  for (Thread server = 0; server < layout.servers; ++server)
    pages.push_back(pointer(layout.stacks() + server * ProgramLayout::stack_bytes));
  return pages;
}

}  // namespace

// The layout of the first process is that of all.
runtime::Agreed ProgramFacts::agree(runtime::Collective<Job>& all, bool launched) {
  first_process = getpid();
  const auto processes = static_cast<Thread>(launched ? all.size() : 0);
  TOMBOLO_AGREE(all.step({}, [&] { return lay_out(*kind, processes, layout); }));
  all.broadcast(layout, 0);
  all.broadcast(first_process, 0);
  TOMBOLO_AGREE(all.step({}, [&] {
    memory = {pointer(layout.variables.low), layout.end() - layout.variables.low};
    return Status();
  }));
  return kind->make(all, plan());
}

MemoryPlan ProgramFacts::plan() const {
  return {.at = memory,
          .filled = layout.variables.bytes(),
          .threads = layout.servers,
          .locks = layout.locks(),
          .words = layout.words(),
          .closed = stack_ends(layout)};
}

Status ProgramFacts::make_bases(std::byte* at) {
  const std::size_t bytes = base_bytes() * layout.servers;
  void* const made =
      mmap(at, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == nullptr ? 0 : MAP_FIXED_NOREPLACE),
           -1, 0);
  if (made == MAP_FAILED)
    return Status::no_memory(
        fmt::format("{} bytes for thread-local memory: {}", bytes, std::strerror(errno)));
  bases = {static_cast<std::byte*>(made), bytes};
  return {};
}

std::string ProgramFacts::advice(const Status& why) const {
  const bool is_laid_out = layout.servers != 0;
  if (why.code() != Code::no_memory || !is_laid_out) return {};
  return fmt::format(
      ". It is for {} processes and a heap of {} bytes{}; smaller numbers need less: "
      "-n (TOMBOLO_DSM_PROCESSES), --memory (TOMBOLO_DSM_MEMORY){}",
      layout.servers, layout.heap_bytes, layout.has_pages ? ", and the pages that each caches" : "",
      layout.has_pages ? ", --cache (TOMBOLO_DSM_CACHE)" : "");
}

std::span<std::byte> ProgramFacts::first_stack() const {
  const std::uint64_t page = host::page_bytes();
  return {pointer(layout.variables.high + page), ProgramLayout::first_stack_bytes - page};
}

std::span<std::byte> ProgramFacts::stack_of(Thread server) const {
  const std::uint64_t page = host::page_bytes();
  return {pointer(layout.stacks() + server * ProgramLayout::stack_bytes + page),
          ProgramLayout::stack_bytes - page};
}

std::span<std::byte> ProgramFacts::base_of(Thread server) const {
  return bases.subspan(server * base_bytes(), base_bytes());
}

}  // namespace tombolo::dsm
