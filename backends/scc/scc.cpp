// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/scc.h"

#include <algorithm>

namespace tombolo::scc::detail {
namespace {

// The bytes that a copy handles at a time: a line on each side.
constexpr std::size_t kChunk = 32;
// Below it a copy engine is not worth its start.
constexpr std::size_t kEngineBytes = 256;
constexpr std::uint64_t kPollsPerIdle = 64;

Cpu& cpu_of(const Attachment& at) {
  TOMBOLO_CHECK(at.cpu != nullptr, "scc: core {} was not attached by a scc::Job", at.self);
  return *at.cpu;
}

}  // namespace

Base::Base(const Attachment& at)
    : cpu_(cpu_of(at)),
      chip_(cpu_.chip()),
      placement_(at.placement),
      homes_(at.core_of_home),
      idle_(at.idle),
      self_(at.self),
      cores_(at.cores),
      sync_bytes_per_home_(at.sync_bytes_per_home),
      mappings_(chip_.free_entries()),
      entry_of_page_(cores_ * static_cast<std::size_t>(chip_.parameters().layout.public_pages),
                     -1) {
  for (const machine::DataRegion& region : at.data) data_bytes_.push_back(region.bytes);
  std::vector<std::uint32_t> blocks(chip_.controllers());
  for (Home home = 0; home < cores_; ++home) {
    const std::uint32_t controller = placement_.sync_controller >= 0
                                         ? static_cast<std::uint32_t>(placement_.sync_controller)
                                         : chip_.controller_of(core_of(home));
    const View block{chip_.shared(controller) +
                         (placement_.sync_offset + blocks[controller]++ * sync_bytes_per_home_),
                     MemoryType::ncm};
    sync_blocks_.push_back(block);
  }
}

Status Base::pause(std::uint64_t ns) {
  cpu_.fibre().pause(Duration::nanoseconds(static_cast<std::int64_t>(ns)));
  cpu_.fibre().await_turn();  // it may wait for more than simulated memory
  return idle();
}

Status Base::idle() {
  if (idle_ == nullptr || ++polls_ % kPollsPerIdle != 0) return {};
  return idle_->idle();
}

// ---- Where data lie -----------------------------------------------------------------------------

View Base::data(DataPlace place) {
  if (place.home != self_) return peer(place);
  return {chip_.public_memory() + (placement_.data_offset + place.offset), placement_.own};
}

View Base::peer(DataPlace place) {
  const std::uint64_t at = placement_.data_offset + place.offset;
  const auto page = static_cast<std::uint32_t>(at / chip_.page_bytes());
  const std::uint32_t entry = map_peer_page(place.home, page);
  return {chip_.page(entry) + at % chip_.page_bytes(), placement_.peers};
}

// Least used goes first (000 section 4.3.2).
std::uint32_t Base::map_peer_page(Home home, std::uint32_t page) {
  const auto pages = static_cast<std::size_t>(chip_.parameters().layout.public_pages);
  TOMBOLO_CHECK(home < cores_ && page < pages, "scc: page {} of home {}: {} homes of {} pages",
                page, home, cores_, pages);
  std::int32_t& entry = entry_of_page_[home * pages + page];
  if (entry < 0) {
    const auto least =
        std::min_element(mappings_.begin(), mappings_.end(),
                         [](const Mapping& a, const Mapping& b) { return a.uses < b.uses; });
    if (least->key >= 0) {
      entry_of_page_[static_cast<std::size_t>(least->key)] = -1;
      cpu_.flush_combined();  // SC2: writes to the old page, before the entry leads elsewhere
      forget_lines(
          placement_.peers);  // SC2: its lines carry the addresses that will be the new page's
    }
    *least = {static_cast<std::int64_t>(home * pages + page), 0};
    entry = static_cast<std::int32_t>(least - mappings_.begin());
    cpu_.wait_for_writes();  // SC2
    cpu_.compute(cpu_.timing().system_call);
    cpu_.set_lut(cpu_.id(), chip_.first_free_entry() + static_cast<std::uint32_t>(entry),
                 chip_.public_page(core_of(home), page));
    cpu_.wait_for_writes();  // the entry counts from here on
  }
  ++mappings_[static_cast<std::size_t>(entry)].uses;
  return chip_.first_free_entry() + static_cast<std::uint32_t>(entry);
}

// Cuts a range at the ends of pages, which need not follow each other in physical memory.
template <class Use>
void Base::each_page(DataPlace place, std::size_t bytes, Use&& use) {
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = placement_.data_offset + place.offset + done;
    const auto room = static_cast<std::size_t>(chip_.page_bytes() - at % chip_.page_bytes());
    const std::size_t n = std::min(bytes - done, room);
    use(data(place + done), done, n);
    done += n;
  }
}

// ---- Copies -------------------------------------------------------------------------------------

Status Base::read(DataPlace place, void* out, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  const Buffer* buffer = buffer_of(out);
  each_page(place, bytes, [&](View from, std::size_t start, std::size_t n) {
    held(from.type).lines = true;  // now: to map the page may have made the caches forget all
    for (std::size_t done = 0; done < n;) {
      const std::size_t chunk = std::min(n - done, kChunk - (from.first.byte() + done) % kChunk);
      cpu_.copy_from(from + done, to + start + done, chunk);
      if (buffer != nullptr) cpu_.write(view_of(*buffer, to + start + done), zeros, chunk);
      done += chunk;
    }
  });
  return {};
}

Status Base::write(DataPlace place, const void* in, std::size_t bytes) {
  const bool kept = keeps_stores(type_of_home(place.home));
  copy_out(place, static_cast<const std::byte*>(in), bytes, kept, false);
  note_put(place, bytes, kept ? cached_puts_ : puts_);
  return {};
}

Status Base::write_through(DataPlace place, const void* in, std::size_t bytes) {
  const MemoryType type = type_of_home(place.home);
  // A store must not hit a line that would keep it, or take its neighbours along (R2).
  if (keeps_stores(type) && held(type).lines && !placement_.as_prototype) forget_lines(type);
  copy_out(place, static_cast<const std::byte*>(in), bytes, false,
           chip_.parameters().extensions.copy_engine);
  note_put(place, bytes, puts_);
  return {};
}

// The owner's caches lose these lines when the bytes are in memory: earlier, it could fetch the old
// ones again.
void Base::note_put(DataPlace place, std::size_t bytes, std::vector<Put>& puts) {
  if (chip_.parameters().extensions.remote_invalidation && place.home != self_ && bytes > 0)
    puts.push_back({place, bytes});
}

// Bytes of a range that this core's caches may have kept are in memory now, or on their way. Bytes
// put beyond the range are not, and have to be told of again.
void Base::note_published(DataPlace place, std::size_t bytes) {
  std::erase_if(cached_puts_, [&](const Put& put) {
    const machine::Offset end = put.place.offset + put.bytes;
    if (put.place.home != place.home || end <= place.offset ||
        put.place.offset >= place.offset + bytes)
      return false;
    puts_.push_back(put);
    return put.place.offset >= place.offset && end <= place.offset + bytes;
  });
}

// `kept`: lines in the caches may keep the stored bytes.
void Base::copy_out(DataPlace place, const std::byte* in, std::size_t bytes, bool kept,
                    bool by_engine) {
  const Buffer* buffer = buffer_of(in);
  by_engine = by_engine && buffer != nullptr;
  each_page(place, bytes, [&](View to, std::size_t start, std::size_t n) {
    if (kept) held(to.type).stores = true;  // now: as for reads
    std::size_t done = 0;
    while (done < n) {
      const std::size_t in_line = (to.first.byte() + done) % kChunk;
      const std::size_t whole = (n - done) / kChunk * kChunk;
      const bool aligned =
          in_line == 0 &&
          (buffer == nullptr || view_of(*buffer, in + start + done).first.byte() % kChunk == 0);
      if (by_engine && aligned && whole >= kEngineBytes) {
        cpu_.copy_by_engine(view_of(*buffer, in + start + done), to + done, whole,
                            in + start + done);
        done += whole;
        continue;
      }
      const std::size_t chunk = std::min(n - done, kChunk - in_line);
      if (buffer != nullptr) touch_read(in + start + done, chunk);
      cpu_.copy_to(to + done, in + start + done, chunk);
      done += chunk;
    }
  });
}

// ---- Coherence ----------------------------------------------------------------------------------

bool Base::refreshes_at_once() const {
  if (placement_.as_prototype || chip_.parameters().extensions.remote_invalidation) return true;
  return placement_.own == MemoryType::ncm || placement_.own == MemoryType::mpbt_wt;
}

// After it no cached store to memory of this type is left that is not in memory, and no line of it
// that could be stale.
void Base::forget_lines(MemoryType type) {
  Held& lines = held(type);
  if (!lines.lines && !lines.stores) return;
  if (scc::in_l2(type)) {
    cpu_.wbinvd();
    cpu_.flush_l2();
    held_[0] = held_[1] = {};
    return;
  }
  if (lines.stores) {
    cpu_.wbinvd();  // SC1
  } else {
    cpu_.cl1invmb();
  }
  lines = {};
}

void Base::publish(DataPlace place, std::size_t bytes) {
  const MemoryType type = type_of_home(place.home);
  if (held(type).stores && !placement_.as_prototype) {
    if (chip_.parameters().extensions.selective_write_back) {
      each_page(place, bytes,
                [&](View first, std::size_t, std::size_t n) { cpu_.write_back(first, n); });
    } else {
      forget_lines(type);
    }
  }
  note_published(place, bytes);
  drain();  // stores that missed, or went through, wait in the combining buffer
}

void Base::refresh(DataPlace place, std::size_t bytes) {
  const MemoryType type = type_of_home(place.home);
  if (placement_.as_prototype) return cpu_.cl1invmb();
  if (!in_l1(type)) return;
  // A core that put to this core's data takes the lines out of its caches.
  if (place.home == self_ && chip_.parameters().extensions.remote_invalidation) return;
  // By the line costs more than all lines at once, if that is one instruction.
  const bool cheap = !scc::in_l2(type) && !held(type).stores;
  if (chip_.parameters().extensions.selective_invalidation && !cheap) {
    each_page(place, bytes,
              [&](View first, std::size_t, std::size_t n) { cpu_.invalidate(first, n); });
    return;
  }
  forget_lines(type);
}

void Base::drain() {
  if (combines(placement_.own) || combines(placement_.peers)) cpu_.flush_combined();
  cpu_.wait_for_writes();
  for (const Put& put : puts_)
    cpu_.invalidate_at(core_of(put.place.home),
                       chip_.public_memory() + (placement_.data_offset + put.place.offset),
                       put.bytes);
  if (!puts_.empty()) cpu_.wait_for_writes();  // they are gone before any core is told of the put
  puts_.clear();
  cpu_.fibre().await_turn();  // it has happened also for a core told of it by other means
}

// ---- The program's own memory -------------------------------------------------------------------

std::byte* Base::allocate(std::size_t bytes) {
  buffers_.push_back({std::make_unique<std::byte[]>(bytes), bytes, cpu_.allocate_private(bytes)});
  return buffers_.back().bytes.get();
}

const Base::Buffer* Base::buffer_of(const void* p) const {
  const auto* byte = static_cast<const std::byte*>(p);
  for (const Buffer& buffer : buffers_)
    if (byte >= buffer.bytes.get() && byte < buffer.bytes.get() + buffer.size) return &buffer;
  return nullptr;
}

View Base::view_of(const Buffer& buffer, const void* p) const {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - buffer.bytes.get());
  return {buffer.address + offset, MemoryType::dcm};
}

void Base::touch_read(const void* from, std::size_t bytes) {
  const Buffer* buffer = buffer_of(from);
  TOMBOLO_CHECK(buffer != nullptr, "scc: touch_read of memory that allocate() did not give");
  std::byte ignored[kChunk];
  const View first = view_of(*buffer, from);
  for (std::size_t done = 0; done < bytes; done += kChunk)
    cpu_.read(first + done, ignored, std::min(kChunk, bytes - done));
}

void Base::touch_write(const void* to, std::size_t bytes) {
  const Buffer* buffer = buffer_of(to);
  TOMBOLO_CHECK(buffer != nullptr, "scc: touch_write of memory that allocate() did not give");
  const View first = view_of(*buffer, to);
  for (std::size_t done = 0; done < bytes; done += kChunk)
    cpu_.write(first + done, zeros, std::min(kChunk, bytes - done));
}

}  // namespace tombolo::scc::detail
