// SPDX-License-Identifier: Apache-2.0
#include "baselines/private_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tombolo::baselines {
namespace {

constexpr std::size_t line_size = 32;

View view(Place place) { return {place.address, place.type}; }

// The power of two of lines that hold `bytes`.
std::size_t size_class(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width((bytes + line_size - 1) / line_size));
}

// Calls use(done, n) for each part of a range that lies in one line.
template <class Use>
void each_line(Address first, std::size_t bytes, Use&& use) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n =
        std::min<std::size_t>(bytes - done, line_size - (first.byte() + done) % line_size);
    use(done, n);
    done += n;
  }
}

}  // namespace

void load(Cpu& cpu, Place from, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  each_line(from.address, bytes, [&](std::size_t done, std::size_t n) {
    cpu.read(view(from + done), out + done, n);
    if (from.host != nullptr) std::memcpy(out + done, from.host + done, n);
  });
}

void store(Cpu& cpu, Place to, const void* from, std::size_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  each_line(to.address, bytes, [&](std::size_t done, std::size_t n) {
    cpu.write(view(to + done), in + done, n);
    if (to.host != nullptr) std::memcpy(to.host + done, in + done, n);
  });
}

void touch_read(Cpu& cpu, Place from, std::size_t bytes) {
  std::byte ignored[line_size];
  each_line(from.address, bytes,
            [&](std::size_t done, std::size_t n) { cpu.read(view(from + done), ignored, n); });
}

void touch_write(Cpu& cpu, Place to, std::size_t bytes) {
  constexpr std::byte zeros[line_size] = {};
  TOMBOLO_CHECK(to.host != nullptr, "touch_write of simulated memory would overwrite it");
  each_line(to.address, bytes,
            [&](std::size_t done, std::size_t n) { cpu.write(view(to + done), zeros, n); });
}

void copy_out(Cpu& cpu, Place from, View to, std::size_t bytes) {
  std::byte line[line_size];
  each_line(to.first, bytes, [&](std::size_t done, std::size_t n) {
    load(cpu, from + done, line, n);
    cpu.copy_to(to + done, line, n);
  });
}

void copy_in(Cpu& cpu, View from, Place to, std::size_t bytes, TargetLines lines) {
  std::byte line[line_size];
  each_line(from.first, bytes, [&](std::size_t done, std::size_t n) {
    if (lines == TargetLines::fetched) cpu.load<std::uint8_t>(view(to + done));
    cpu.copy_from(from + done, line, n);
    store(cpu, to + done, line, n);
  });
}

void copy(Cpu& cpu, Place from, Place to, std::size_t bytes) {
  std::byte line[line_size];
  each_line(to.address, bytes, [&](std::size_t done, std::size_t n) {
    load(cpu, from + done, line, n);
    // The words of a copy loop cost more than their load and their store.
    cpu.compute((cpu.timing().copy_word - cpu.timing().load) *
                static_cast<std::int64_t>((n + 3) / 4));
    store(cpu, to + done, line, n);
  });
}

Place PrivateMemory::allocate(std::size_t bytes) {
  blocks_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1)));
  return {cpu_.allocate_private(bytes), blocks_.back().get()};
}

Place PrivateMemory::borrow(std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  if (free_.size() <= size) free_.resize(size + 1);
  if (free_[size].empty()) return allocate(line_size << size);
  const Place place = free_[size].back();
  free_[size].pop_back();
  return place;
}

void PrivateMemory::give_back(Place place, std::size_t bytes) {
  free_.at(size_class(bytes)).push_back(place);
}

}  // namespace tombolo::baselines
