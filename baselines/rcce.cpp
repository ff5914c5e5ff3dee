// SPDX-License-Identifier: Apache-2.0
#include "baselines/rcce.h"

#include <algorithm>

namespace tombolo::baselines {
namespace {

constexpr std::size_t kLine = 32;

}  // namespace

Rcce::Rcce(Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores, Omitted omitted)
    : cpu_(cpu),
      memory_(cpu),
      cores_(cores),
      rank_(rank),
      omitted_(omitted),
      flag_bytes_((cores.size() + kLine - 1) / kLine * kLine) {
  const std::uint64_t mpb = cpu.chip().mpb_bytes();
  TOMBOLO_CHECK(kFlags * flag_bytes_ + 2 * kLine <= mpb,
                "flags of {} processes leave no room in a message passing buffer of {} bytes",
                cores.size(), mpb);
  buffer_bytes_ = static_cast<std::size_t>(mpb) - kFlags * flag_bytes_;
}

View Rcce::flag_view(std::uint32_t process, Flag flag, std::uint32_t setter) const {
  TOMBOLO_CHECK(process < size() && setter < size(), "flag of rank {} for rank {} of {}", process,
                setter, size());
  return {cpu_.chip().mpb(cores_[process]) + (flag * flag_bytes_ + setter), MemoryType::mpbt_wb};
}

View Rcce::buffer_view(std::uint32_t process, std::size_t offset, std::size_t bytes) const {
  TOMBOLO_CHECK(process < size() && offset + bytes <= buffer_bytes_,
                "{} bytes at {} of the buffer of rank {} of {}: it has {}", bytes, offset, process,
                size(), buffer_bytes_);
  return {cpu_.chip().mpb(cores_[process]) + (kFlags * flag_bytes_ + offset), MemoryType::mpbt_wb};
}

void Rcce::invalidate() {
  if (!omitted_.invalidation) cpu_.cl1invmb();
}

void Rcce::flush() {
  if (!omitted_.flush) cpu_.flush_combined();
}

// ---- Flags --------------------------------------------------------------------------------------

void Rcce::set_flag(std::uint32_t process, Flag flag, std::uint32_t setter, std::uint8_t value) {
  invalidate();  // RF2
  cpu_.store(flag_view(process, flag, setter), value);
  flush();  // a byte does not fill a line: it would stay in the combining buffer
}

std::uint8_t Rcce::flag(Flag flag, std::uint32_t setter) {
  invalidate();  // the last look is still in L1
  return cpu_.load<std::uint8_t>(flag_view(rank_, flag, setter));
}

void Rcce::wait_for_flag(Flag which, std::uint32_t setter, std::uint8_t value) {
  while (flag(which, setter) != value) cpu_.compute(cpu_.timing().loop);
}

// ---- The buffer ---------------------------------------------------------------------------------

void Rcce::put(Place from, std::uint32_t process, std::size_t offset, std::size_t bytes) {
  invalidate();  // RF2
  copy_out(cpu_, from, buffer_view(process, offset, bytes), bytes);
  flush();  // the last line may be in part
}

void Rcce::get(std::uint32_t process, std::size_t offset, Place to, std::size_t bytes,
               TargetLines lines) {
  invalidate();  // the buffer's former contents may be in L1
  copy_in(cpu_, buffer_view(process, offset, bytes), to, bytes, lines);
}

// ---- Messages -----------------------------------------------------------------------------------

void Rcce::send(Place from, std::size_t bytes, std::uint32_t to) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n = std::min(bytes - done, buffer_bytes_);
    put(from + done, rank_, 0, n);
    set_flag(to, kSent, rank_, 1);
    wait_for_flag(kReady, to, 1);
    set_flag(rank_, kReady, to, 0);
    done += n;
  }
}

void Rcce::recv(Place to, std::size_t bytes, std::uint32_t from) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n = std::min(bytes - done, buffer_bytes_);
    wait_for_flag(kSent, from, 1);
    set_flag(rank_, kSent, from, 0);  // before the sender learns that it may set it again
    get(from, 0, to + done, n);
    set_flag(from, kReady, rank_, 1);
    done += n;
  }
}

// All tell rank 0, and it tells all. The values count barriers, so that nothing need be cleared.
void Rcce::barrier() {
  ++barriers_;
  if (rank_ != 0) {
    set_flag(0, kArrived, rank_, barriers_);
    return wait_for_flag(kReleased, 0, barriers_);
  }
  for (std::uint32_t other = 1; other < size(); ++other) wait_for_flag(kArrived, other, barriers_);
  for (std::uint32_t other = 1; other < size(); ++other) set_flag(other, kReleased, 0, barriers_);
}

}  // namespace tombolo::baselines
