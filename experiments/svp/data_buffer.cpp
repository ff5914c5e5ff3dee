// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/data_buffer.h"

#include <algorithm>
#include <array>
#include <span>

namespace tombolo::experiments {
namespace {

using scc::View;

constexpr std::uint64_t part_bytes = 1024;
constexpr std::uint64_t first_capacity = 64;

// Calls work(offset, bytes) for parts of the range, and takes interrupts between them.
template <class Work>
void by_parts(Linux& system, std::uint64_t bytes, Work&& work) {
  for (std::uint64_t done = 0; done < bytes; done += part_bytes) {
    work(done, std::min(part_bytes, bytes - done));
    system.look_around();
  }
}

// Moves bytes at a cost for each element; `change` sees them on their way.
template <class Change>
void move(Linux& system, View from, View to, const Run& run, std::int64_t half_cycles_an_element,
          Change&& change) {
  by_parts(system, run.bytes(), [&](std::uint64_t at, std::uint64_t n) {
    std::array<std::byte, part_bytes> held;
    system.cpu().read(from + at, held.data(), n);
    change(std::span(held.data(), n));
    const auto elements = static_cast<std::int64_t>(n / run.element_bytes);
    system.run_code({half_cycles_an_element * elements});
    system.cpu().write(to + at, held.data(), n);
  });
}

void keep(std::span<std::byte>) {}

}  // namespace

void copy_memory(Linux& system, View from, View to, std::uint64_t bytes) {
  by_parts(system, bytes, [&](std::uint64_t at, std::uint64_t n) {
    std::array<std::byte, part_bytes> held;
    system.cpu().copy_from(from + at, held.data(), n);
    system.cpu().write(to + at, held.data(), n);
  });
}

void DataBuffer::clear() {
  if (capacity_ > 0) system_.free(memory_);
  bytes_ = capacity_ = taken_ = 0;
  runs_.clear();
}

Status DataBuffer::grow(std::uint64_t bytes) {
  simulator::Address larger;
  TOMBOLO_TRY(system_.allocate(bytes, &larger));
  if (capacity_ > 0) {
    copy_memory(system_, at(0), {larger, scc::MemoryType::dcm}, bytes_);
    system_.free(memory_);
  }
  memory_ = larger;
  capacity_ = bytes;
  return {};
}

Status DataBuffer::reserve(std::uint64_t bytes) {
  return bytes > capacity_ ? grow(bytes) : Status();
}

Status DataBuffer::gather(View from, const Run& run) {
  const std::uint64_t end = bytes_ + run.bytes();
  while (capacity_ < end) TOMBOLO_TRY(grow(std::max(first_capacity, capacity_ * 2)));
  move(system_, from, at(bytes_), run, system_.svp().gather_element.halves, keep);
  bytes_ = end;
  runs_.push_back(run);
  return {};
}

void DataBuffer::scatter(View to, const Run& run) {
  move(system_, at(taken_), to, run, system_.svp().gather_element.halves, keep);
  taken_ += run.bytes();
}

// From one order of bytes to the other.
void DataBuffer::turn(View from, View to) {
  std::uint64_t done = 0;
  for (const Run& run : runs_) {
    const std::int64_t words = (run.element_bytes + 3) / 4;
    const std::int64_t cost =
        system_.svp().xdr_element.halves + words * system_.svp().xdr_word.halves;
    move(system_, from + done, to + done, run, cost, [&](std::span<std::byte> bytes) {
      for (std::size_t i = 0; i + run.element_bytes <= bytes.size(); i += run.element_bytes)
        std::reverse(bytes.data() + i, bytes.data() + i + run.element_bytes);
    });
    done += run.bytes();
  }
}

void DataBuffer::encode(View to) { turn(at(0), to); }

Status DataBuffer::decode(View from, const std::vector<Run>& runs) {
  clear();
  runs_ = runs;
  for (const Run& run : runs) bytes_ += run.bytes();
  TOMBOLO_TRY(reserve(bytes_));
  turn(from, at(0));
  return {};
}

}  // namespace tombolo::experiments
