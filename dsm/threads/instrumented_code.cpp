// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/instrumented_code.h"

#include <algorithm>
#include <array>

#include "dsm/compiler/runtime_calls.h"
#include "dsm/threads/atomic_change.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

using Kind = AtomicChange::Kind;

constinit InstrumentedCode served;

constinit AttachedModules attached;

ProgramMemory* memory_of(const void* address) {
  return served.memory_of == nullptr ? nullptr : served.memory_of(address);
}

// DIC2
Lock lock_of(const ProgramMemory& memory, const void* address) {
  const std::uint64_t page = reinterpret_cast<std::uint64_t>(address) / memory.page_bytes();
  return served.first_lock + static_cast<Lock>(page % served.locks);
}

void record(const void* address, std::size_t bytes) {
  if (ProgramMemory* const memory = memory_of(address); memory != nullptr)
    memory->record(address, bytes);
}

std::uint64_t load(const void* address, std::size_t bytes, int /*order*/) {
  return change_atomically(const_cast<void*>(address), bytes, {.kind = Kind::load});
}

void store(void* address, std::size_t bytes, std::uint64_t value, int /*order*/) {
  change_atomically(address, bytes, {.kind = Kind::exchange, .operand = value});
}

Kind kind_of(tombolo_dsm_update update) {
  static_assert(static_cast<int>(Kind::exchange) == tombolo_dsm_exchange + 1);
  static_assert(static_cast<int>(Kind::umin) == tombolo_dsm_umin + 1);
  return static_cast<Kind>(static_cast<int>(update) + 1);
}

std::uint64_t update(void* address, std::size_t bytes, tombolo_dsm_update how,
                     std::uint64_t operand, int /*order*/) {
  return change_atomically(address, bytes, {.kind = kind_of(how), .operand = operand});
}

std::uint64_t compare_exchange(void* address, std::size_t bytes, std::uint64_t expected,
                               std::uint64_t desired, int /*success*/, int /*failure*/) {
  return change_atomically(
      address, bytes, {.kind = Kind::compare_exchange, .operand = desired, .expected = expected});
}

// Operations on the program's memory are in order by themselves; this one is for all else.
void fence(int /*order*/) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

constexpr tombolo_dsm_runtime table{.record = &record,
                                    .load = &load,
                                    .store = &store,
                                    .update = &update,
                                    .compare_exchange = &compare_exchange,
                                    .fence = &fence};

}  // namespace

void serve_instrumented_code(const InstrumentedCode& how) { served = how; }

std::uint64_t change_atomically(void* address, std::size_t bytes, const AtomicChange& change) {
  ProgramMemory* const memory = memory_of(address);
  if (memory == nullptr) return change_by_processor(address, bytes, change);
  const Lock lock = lock_of(*memory, address);
  std::uint64_t old = 0;
  for (bool done = false;;) {
    served.check(memory->try_change(lock, address, bytes, change, old, done));
    if (done) break;
    runtime_hooks.between_looks();
    served.check(memory->pause());
  }
  memory->paused_enough();
  return old;
}

const tombolo_dsm_runtime* attach(const tombolo_dsm_module& module) {
  if (module.version != tombolo_dsm_calls_version) return nullptr;
  // One more than there is room for: the stores of its spans travel by pages.
  if (attached.count < AttachedModules::most)
    attached.modules[attached.count++] = {&module, module.in_span};
  return &table;
}

void detach(const tombolo_dsm_module& module) {
  const auto begin = attached.modules.begin();
  const auto rest = std::remove_if(begin, begin + static_cast<std::ptrdiff_t>(attached.count),
                                   [&](const auto& each) { return each.module == &module; });
  attached.count = static_cast<std::size_t>(rest - begin);
}

const AttachedModules& attached_modules() { return attached; }
void attach_all(const AttachedModules& modules) { attached = modules; }

void tell_instrumented_code(int spans) {
  for (std::size_t i = 0; i < attached.count; ++i) *attached.modules[i].in_span() = spans;
}

}  // namespace tombolo::dsm
