// SPDX-License-Identifier: Apache-2.0
#include "backends/flushed/written_regions.h"

#include <algorithm>

#include "host/memory/page.h"

namespace tombolo::flushed {
namespace {

// In units of the write-back of a page whose lines are clean, measured on x86: the cost of a look,
// of each written page beside its write-back (above all the page fault), and of the translation of
// a page that the processor has to forget. If one page is written, Linux has the processor forget
// those of the rest of the range one by one, unless they are so many that it drops all.
constexpr std::uint64_t cost_of_look = 2;
constexpr std::uint64_t cost_of_written_page = 6;
constexpr std::uint64_t most_forgotten_pages = 33;

std::uint64_t cost_of(std::uint64_t written, std::uint64_t pages) {
  if (written == 0) return cost_of_look;
  return cost_of_look + cost_of_written_page * written +
         (pages <= most_forgotten_pages ? pages : 0);
}

}  // namespace

void WrittenRegions::publish(const host::flush::Policy& by, machine::Home home,
                             const std::byte* memory, std::uint64_t bytes) {
  if (bytes < least_bytes || !by.watch_writes) {
    // The program's stores go to memory with everything else.
    host::flush::publish(by, memory, bytes);
    return;
  }
  const std::lock_guard lock(mutex_);  // WR1
  auto found = std::find_if(regions_.begin(), regions_.end(),
                            [home](const Region& region) { return region.home() == home; });
  if (found == regions_.end()) {
    regions_.emplace_back(home, memory, bytes);
    found = regions_.end() - 1;
  }
  found->publish(by);
}

WrittenRegions::Region::Region(machine::Home home, const std::byte* memory, std::uint64_t bytes)
    : home_(home), memory_(memory), bytes_(bytes), pages_(memory) {
  const std::uint64_t page = host::page_bytes();
  const std::uint64_t before = (0 - reinterpret_cast<std::uintptr_t>(memory)) % page;
  if (before >= bytes) return;
  pages_ = memory + before;
  page_bytes_ = (bytes - before) / page * page;
  if (page_bytes_ == 0) return;
  // WR2: without a watch everything is published. describe() and `doctor` say why.
  (void)host::WriteWatch::open(const_cast<std::byte*>(pages_), page_bytes_, watch_).ok();
}

void WrittenRegions::Region::publish(const host::flush::Policy& by) {
  if (watch_ != nullptr && publish_written(by)) return;
  // WR2, or a rest: the program's stores go to memory with everything else.
  host::flush::publish(by, memory_, bytes_);
}

// False if nothing may be concluded about the bytes that were not published.
bool WrittenRegions::Region::publish_written(const host::flush::Policy& by) {
  if (rest_ > 0) {
    --rest_;
    return false;
  }
  std::uint64_t written = 0;
  const Status asked = watch_->each_written([&](const std::byte* at, std::size_t bytes) {
    host::flush::publish(by, at, bytes);  // the program stored something there
    written += bytes;
  });
  if (!asked.ok()) {
    watch_.reset();
    return false;
  }
  // Parts of pages at the ends are not watched, since they may be parts of other regions too: the
  // program may have stored there.
  host::flush::publish(by, memory_, static_cast<std::size_t>(pages_ - memory_));
  const std::byte* end = pages_ + page_bytes_;
  host::flush::publish(by, end, static_cast<std::size_t>(memory_ + bytes_ - end));
  judge(written / host::page_bytes());
  return true;
}

// Rests if publishing everything would have cost less. After a rest all pages that were written in
// the meantime are visited, which tells nothing about the future.
void WrittenRegions::Region::judge(std::uint64_t written) {
  if (!judging_) {
    judging_ = true;
    return;
  }
  const std::uint64_t pages = page_bytes_ / host::page_bytes();
  if (cost_of(written, pages) <= pages) {
    next_rest_ = 1;
    return;
  }
  judging_ = false;
  rest_ = next_rest_;
  next_rest_ = std::min(next_rest_ * 2, longest_rest);
}

}  // namespace tombolo::flushed
