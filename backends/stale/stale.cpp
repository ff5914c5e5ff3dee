// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/stale.h"

#include <unistd.h>

#include "host/memory/foreign_memory.h"

namespace tombolo::stale {
namespace {

// A store to a sync word is deferred once in so many.
constexpr std::uint64_t defer_one_in = 2;
// The oldest deferred store is done once in so many operations.
constexpr std::uint64_t release_one_in = 6;
// Of the evictions, one in so many is of the combining buffer, and one of any line of an open
// region.
constexpr std::uint64_t combined_one_in = 4;
constexpr std::uint64_t anywhere_one_in = 3;
// Longer than it takes to look up some lines of source.
constexpr std::chrono::seconds patience_with_a_teller{30};

}  // namespace

Core::Core(const Attachment& attachment)
    : at_(attachment),
      random_(Random::stream(at_.seed, at_.self)),
      findings_(at_.shared),
      spans_(at_),
      bus_(at_, spans_),
      combining_(bus_, Random::stream(at_.seed, at_.self + (std::uint64_t{1} << 32))),
      images_(at_),
      process_(getpid()) {
  TOMBOLO_CHECK(at_.data.empty() || at_.self < at_.data.size(), "stale: core {} of {} regions",
                at_.self, at_.data.size());
  for (SpanId span = 0; span < spans_.size(); ++span) {
    if (spans_[span].memory == nullptr) {
      caches_.push_back(nullptr);
      continue;
    }
    const Home first = spans_[span].first;
    const bool own = !at_.data.empty() && spans_.of(at_.self) == span;
    const RegionCache::Image image{images_.of(first), own && at_.own_view != nullptr};
    caches_.push_back(std::make_unique<RegionCache>(
        span, image, RegionCache::Surroundings{spans_, bus_, combining_, findings_}));
    if (own) caches_.back()->adopt();
  }
  has_helper_ = settler::add(*this);
}

Core::~Core() {
  if (process_ != getpid()) return;
  settler::remove(*this);
  close();
}

// Sync words -------------------------------------------------------------------------------------

std::uint64_t Core::load(Word word) {
  const Lock lock(mutex_);
  let_things_happen();
  std::uint64_t value = 0;
  if (stores_.find(word, value)) return value;
  return word->load(std::memory_order_seq_cst);  // not before an earlier atomic (R3)
}

void Core::store(Word word, std::uint64_t v) {
  const Lock lock(mutex_);
  let_things_happen();
  if (!has_helper_ || (stores_.empty() && !random_.one_in(defer_one_in))) {
    word->store(v, std::memory_order_release);
    return;
  }
  stores_.put(word, v);
  settler::arm();
}

std::uint64_t Core::fetch_add(Word word, std::uint64_t v) {
  const Lock lock(mutex_);
  let_things_happen();
  stores_.release_all();
  return word->fetch_add(v);
}

std::uint64_t Core::exchange(Word word, std::uint64_t v) {
  const Lock lock(mutex_);
  let_things_happen();
  stores_.release_all();
  return word->exchange(v);
}

std::uint64_t Core::compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
  const Lock lock(mutex_);
  let_things_happen();
  stores_.release_all();
  word->compare_exchange_strong(expected, desired);
  return expected;
}

void Core::fence() {
  const Lock lock(mutex_);
  let_things_happen();
  stores_.release_all();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Core::notify(machine::Home home) {
  const Lock lock(mutex_);
  let_things_happen();
  if (stores_.empty())
    bell(home).ring();
  else
    stores_.put(bell(home));
}

void Core::settle() {
  const Lock lock(mutex_);
  let_things_happen();
  stores_.release_all();
}

bool Core::settle_if_free() {
  const Lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) stores_.release_all();
  return lock.owns_lock();
}

// Random events ----------------------------------------------------------------------------------

void Core::let_things_happen() {
  findings_.next_operation();
  if (!stores_.empty() && (stores_.waited_long_enough() || random_.one_in(release_one_in)))
    stores_.release_one();
  if (random_.one_in(at_.evictions)) evict_something();
}

void Core::evict_something() {
  if (closed_ || caches_.empty()) return;
  if (random_.one_in(combined_one_in)) {
    combining_.send_one();
    return;
  }
  if (recent_.empty() || random_.one_in(anywhere_one_in)) {
    // Half of the time the own region: of n regions, few others are ever open.
    const std::uint64_t span =
        random_.one_in(2) ? random_.below(caches_.size()) : spans_.of(at_.self);
    RegionCache* cache = caches_[span].get();
    if (cache != nullptr && cache->open()) cache->evict(cache->candidate(random_));
    return;
  }
  const RecentLines::Place victim = recent_.pick(random_);
  caches_[victim.span]->evict(victim.line);
}

// Data -------------------------------------------------------------------------------------------

void Core::check(const char* operation, machine::DataPlace place, std::size_t bytes) const {
  TOMBOLO_CHECK(place.home < at_.data.size(), "stale: {} at home {} of {}", operation, place.home,
                at_.data.size());
  const std::uint64_t size = at_.data[place.home].bytes;
  TOMBOLO_CHECK(place.offset <= size && bytes <= size - place.offset,
                "stale: {} of {} bytes at {} is past the {} bytes of home {}", operation, bytes,
                place.offset, size, place.home);
  TOMBOLO_CHECK(!closed_, "stale: {} after close", operation);
}

void Core::remember(machine::DataPlace place, std::size_t bytes) {
  if (bytes == 0) return;
  const SpanId span = spans_.of(place.home);
  const Line first = spans_[span].line_of(in_span(place));
  const Line last = spans_[span].line_of(in_span(place) + bytes - 1);
  recent_.add(span, first);
  if (last == first) return;
  recent_.add(span, last);
  recent_.add(span, first + random_.below(last - first));
}

Status Core::read(machine::DataPlace place, void* out, std::size_t bytes) {
  const Lock lock(mutex_);
  check("read", place, bytes);
  let_things_happen();
  RegionCache* const cache = cache_of(place.home);
  if (cache == nullptr) return read_foreign(place, out, bytes);
  cache->read(in_span(place), static_cast<std::byte*>(out), bytes);
  remember(place, bytes);
  return {};
}

Status Core::write(machine::DataPlace place, const void* in, std::size_t bytes) {
  const Lock lock(mutex_);
  check("write", place, bytes);
  let_things_happen();
  RegionCache* const cache = cache_of(place.home);
  if (cache == nullptr) return write_foreign(place, in, bytes);
  cache->write(in_span(place), static_cast<const std::byte*>(in), bytes);
  remember(place, bytes);
  return {};
}

Status Core::write_through(machine::DataPlace place, const void* in, std::size_t bytes) {
  const Lock lock(mutex_);
  check("write_through", place, bytes);
  let_things_happen();
  RegionCache* const cache = cache_of(place.home);
  if (cache == nullptr) return write_foreign(place, in, bytes);
  cache->write_through(in_span(place), static_cast<const std::byte*>(in), bytes);
  remember(place, bytes);
  return {};
}

void Core::publish(machine::DataPlace place, std::size_t bytes) {
  const Lock lock(mutex_);
  check("publish", place, bytes);
  let_things_happen();
  if (RegionCache* const cache = cache_of(place.home); cache != nullptr)
    cache->publish(in_span(place), bytes);
}

void Core::refresh(machine::DataPlace place, std::size_t bytes) {
  const Lock lock(mutex_);
  check("refresh", place, bytes);
  let_things_happen();
  if (RegionCache* const cache = cache_of(place.home); cache != nullptr)
    cache->refresh(in_span(place), bytes);
}

void Core::drain() {
  const Lock lock(mutex_);
  let_things_happen();
  combining_.send_all();
}

std::byte* Core::view(machine::DataPlace place) {
  const Lock lock(mutex_);
  check("view", place, 0);
  if (RegionCache* const cache = cache_of(place.home); cache != nullptr) {
    cache->expose();
    // That of an empty region may be behind a neighbour's, with which it shares no cache.
    return images_.of(place.home) + place.offset;
  }
  if (place.home != at_.self) return nullptr;
  return reinterpret_cast<std::byte*>(at_.data[place.home].foreign_address) + place.offset;
}

void Core::expose(machine::Home home) {
  const Lock lock(mutex_);
  check("expose", {home, 0}, 0);
  if (RegionCache* const cache = cache_of(home); cache != nullptr) cache->expose();
}

// Regions without mapping ------------------------------------------------------------------------

Status Core::read_foreign(machine::DataPlace place, void* out, std::size_t bytes) {
  const machine::DataRegion& region = at_.data[place.home];
  const std::uint64_t address = region.foreign_address + place.offset;
  if (place.home != at_.self) return host::read_foreign(region.pid, address, out, bytes);
  shared::load(static_cast<std::byte*>(out), reinterpret_cast<const std::byte*>(address), bytes);
  return {};
}

Status Core::write_foreign(machine::DataPlace place, const void* in, std::size_t bytes) {
  const machine::DataRegion& region = at_.data[place.home];
  const std::uint64_t address = region.foreign_address + place.offset;
  if (place.home != at_.self) return host::write_foreign(region.pid, address, in, bytes);
  shared::store(reinterpret_cast<std::byte*>(address), static_cast<const std::byte*>(in), bytes);
  return {};
}

// Beyond the contract ----------------------------------------------------------------------------

void Core::set_site(std::uint64_t site) {
  const Lock lock(mutex_);
  bus_.set_site(site);
}

void Core::check_promise(machine::Promise promise) {
  const Lock lock(mutex_);
  check("check_promise", {at_.self, 0}, 0);
  let_things_happen();
  RegionCache* const own = cache_of(at_.self);
  if (own == nullptr) return;
  if (promise == machine::Promise::no_store)
    own->report_stores();
  else
    own->report_missing();
}

std::vector<machine::LossFact> Core::take_losses() {
  const Lock lock(mutex_);
  return findings_.board().take(patience_with_a_teller);
}

void Core::losses_told() {
  const Lock lock(mutex_);
  findings_.board().told();
}

void Core::hand_back() {
  const Lock lock(mutex_);
  findings_.next_operation();
  if (RegionCache* const own = cache_of(at_.self); at_.own_view != nullptr && own != nullptr)
    own->hand_back();
}

void Core::close() {
  const Lock lock(mutex_);
  stores_.release_all();
  if (closed_) return;
  findings_.next_operation();
  for (const auto& cache : caches_)
    if (cache != nullptr) cache->report_unpublished();
  combining_.each([&](SpanId span, Line line, ByteMask mask, std::uint64_t site) {
    caches_[span]->report(Loss::undrained, line, mask, {at_.self, site});
  });
  combining_.send_all();
  closed_ = true;
}

}  // namespace tombolo::stale
