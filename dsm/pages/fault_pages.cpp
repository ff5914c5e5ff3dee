// SPDX-License-Identifier: Apache-2.0
#include "dsm/pages/fault_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "dsm/protocol/page_diff.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"
#include "host/stacks/alternate_stack.h"

namespace tombolo::dsm {
namespace {

host::Access access_of(FrameState state) {
  switch (state) {
    case FrameState::readable:
      return host::Access::readable;
    case FrameState::writable:
    case FrameState::left:
      return host::Access::writable;
    default:
      return host::Access::closed;
  }
}

// Twice as much fits into the address space of a process on any 64-bit processor.
constexpr std::size_t most_bytes = std::size_t{1} << 46;

Status check_sizes(const Shape& shape) {
  const auto wrong = [](const std::string& why) {
    return Status::bad_configuration("page cache: " + why);
  };
  if (shape.page_bytes == 0 || shape.page_bytes % host::page_bytes() != 0)
    return wrong(fmt::format("pages of {} bytes; a multiple of this host's {} is needed",
                             shape.page_bytes, host::page_bytes()));
  if (shape.pages == 0) return wrong("a memory of 0 pages");
  if (shape.cached_pages < FaultPages::least_cached_pages)
    return wrong(
        fmt::format("{} pages may be cached; {} are the least, since an instruction may "
                    "need as many at once",
                    shape.cached_pages, FaultPages::least_cached_pages));
  if (shape.pages > most_bytes / shape.page_bytes ||
      shape.cached_pages > most_bytes / shape.page_bytes)
    return wrong(
        fmt::format("{} pages of {} bytes, {} of them cached, are more than a process "
                    "can address",
                    shape.pages, shape.page_bytes, shape.cached_pages));
  return {};
}

Status check_room(const Shape& shape) {
  const std::uint64_t bytes =
      std::min<std::uint64_t>(shape.cached_pages, shape.pages) * shape.page_bytes;
  const host::MemoryRoom room = host::memory_room();
  if (bytes <= room.bytes) return {};
  return Status::no_memory(fmt::format("a page cache of {} bytes; {} bytes of memory are left ({})",
                                       bytes, room.bytes, room.limit));
}

void check_address(const Shape& shape, const FaultPages::Options& options) {
  const auto at = reinterpret_cast<std::uint64_t>(options.address);
  TOMBOLO_CHECK(at % shape.page_bytes == 0,
                "page cache: address {:#x} is not at the start of a page of {} bytes", at,
                shape.page_bytes);
}

}  // namespace

// ---- Creation -----------------------------------------------------------------------------------

Status FaultPages::create(const Shape& shape, const Options& options,
                          std::unique_ptr<FaultPages>& out) {
  TOMBOLO_TRY(check_sizes(shape));
  check_address(shape, options);
  TOMBOLO_TRY(check_room(shape));
  std::unique_ptr<FaultPages> pages(new FaultPages(shape));
  TOMBOLO_TRY(pages->prepare(options));
  out = std::move(pages);
  return {};
}

Status FaultPages::prepare(const Options& options) {
  in_place_ = options.frames != nullptr;
  TOMBOLO_TRY(frames_.create(shape_));
  twins_ = host::ZeroMemory(std::size_t{shape_.cached_pages} * shape_.page_bytes);
  changes_ = host::ZeroMemory(std::size_t{shape_.cached_pages} * sizeof(FrameTable::Slot));
  if (!twins_ || !changes_)
    return Status::no_memory(
        fmt::format("page cache: no address space for the twins of {} pages", shape_.cached_pages));
  TOMBOLO_TRY(host::GuardedMemory::create(
      options.mechanism, shape_.pages * shape_.page_bytes,
      {.address = options.address, .replace = options.replace, .frames = options.frames}, memory_));
  TOMBOLO_TRY(host::ensure_alternate_stack());
  TOMBOLO_TRY(host::catch_faults(memory_->aliases(), *this));
  return host::catch_faults(memory_->view(), *this);
}

FaultPages::~FaultPages() {
  if (memory_ == nullptr) return;
  host::leave_faults(memory_->view());
  host::leave_faults(memory_->aliases());
}

std::span<std::byte> FaultPages::memory() const {
  return {reinterpret_cast<std::byte*>(memory_->view().low), memory_->view().bytes()};
}

Page FaultPages::page_at(const void* address) const {
  return (reinterpret_cast<std::uint64_t>(address) - memory_->view().low) / shape_.page_bytes;
}

host::AddressRange FaultPages::range_of(Page page, Page count) const {
  const std::uint64_t low = memory_->view().low + page * shape_.page_bytes;
  return {low, low + count * shape_.page_bytes};
}

// ---- Faults -------------------------------------------------------------------------------------

bool FaultPages::on_fault(const host::Fault& fault) {
  const auto address = reinterpret_cast<std::uint64_t>(fault.address);
  const host::AddressRange aliases = memory_->aliases();
  if (aliases.low <= address && address < aliases.high)
    must((address - aliases.low) / shape_.page_bytes,
         Status::no_memory("the kernel has no memory for the page cache"));
  const Page page = page_at(fault.address);
  TOMBOLO_CHECK(calls_ == 0,
                "page store: page {} is accessed as by the program inside of a call of the runtime",
                page);
  TOMBOLO_CHECK(handler_ != nullptr, "page store: page {} is accessed before on_miss()", page);
  if (!handler_->may_access(fault.address)) return false;
  instruction_ = fault.instruction;
  const RuntimeCall call(*this);
  must(page, serve(page, fault.kind));
  return true;
}

Status FaultPages::serve(Page page, host::FaultKind kind) {
  const Frame* const frame = cached_frame(page);
  const bool write =
      kind == host::FaultKind::store || (kind == host::FaultKind::unknown && frame != nullptr);
  if (allows(frame, write)) return open_again(*frame);
  times_restored_ = 0;
  TOMBOLO_TRY(miss(page, write));
  note_miss(page);
  return {};
}

Status FaultPages::miss(Page page, bool write) {
  for_store_ = write;
  TOMBOLO_TRY(write ? handler_->write_miss(page) : handler_->read_miss(page));
  TOMBOLO_CHECK(allows(cached_frame(page), write),
                "page store: after a miss of page {} it is not as the program needs it", page);
  for_store_ = false;
  return {};
}

void FaultPages::note_miss(Page page) {
  auto* at = std::ranges::find(missed_, page);
  if (at == missed_.end()) at = missed_.begin();
  std::rotate(at, at + 1, missed_.end());
  missed_.back() = page;
}

bool FaultPages::missed_lately(Page page) const {
  return std::ranges::find(missed_, page) != missed_.end();
}

// The kernel has closed it (DFP1).
Status FaultPages::open_again(const Frame& frame) {
  constexpr int most_times = 10'000;
  if (std::exchange(restored_, frame.page) != frame.page) times_restored_ = 0;
  if (++times_restored_ > most_times)
    return Status::io(fmt::format("it faults though it is open, {} times", most_times));
  return memory_->change(range_of(frame.page), host::Access::closed, access_of(frame.state));
}

void FaultPages::must(Page page, const Status& status) {
  if (status.ok()) return;
  if (handler_ != nullptr) handler_->fail(page, status);
  TOMBOLO_CHECK(status.ok(), "page store: page {}: {}", page, status.message());
}

// ---- Before system calls ------------------------------------------------------------------------

Status FaultPages::touch(const void* at, std::size_t bytes, bool write, std::size_t& touched) {
  TOMBOLO_CHECK(calls_ == 0 && handler_ != nullptr, "page store: touch() inside of a runtime call");
  const auto low = reinterpret_cast<std::uint64_t>(at);
  touched = bytes;
  const host::AddressRange inside = host::common_part({low, low + bytes}, memory_->view());
  if (inside.empty()) return {};
  const Page first = page_at(reinterpret_cast<const void*>(inside.low));
  const Page all = page_at(reinterpret_cast<const void*>(inside.high - 1)) - first + 1;
  const Page most = std::min<Page>(all, shape_.cached_pages);
  Page count = 0;
  // Pages of the range may push each other out of a full cache, at the first attempt above all.
  for (const Page wanted : {most, most, Page{1}}) {
    if (count != 0 && (count == most || wanted < most)) break;
    TOMBOLO_TRY(open_pages(first, wanted, write));
    count = opened(first, wanted, write);
  }
  reach(first, count);
  if (count < all) touched = std::max(range_of(first, count).high, inside.low) - low;
  return {};
}

// As far as the program may access them.
Status FaultPages::open_pages(Page first, Page count, bool write) {
  const RuntimeCall call(*this);
  for (Page page = first; page < first + count; ++page) {
    if (!handler_->may_access(reinterpret_cast<const void*>(range_of(page).low))) break;
    if (!allows(cached_frame(page), write)) TOMBOLO_TRY(miss(page, write));
  }
  return {};
}

Page FaultPages::opened(Page first, Page count, bool write) const {
  Page open = 0;
  while (open < count && allows(cached_frame(first + open), write)) ++open;
  return open;
}

// Brings those back into the page table that the kernel has taken out (DFP1).
void FaultPages::reach(Page first, Page count) const {
  for (Page page = first; page < first + count; ++page)
    (void)*reinterpret_cast<const volatile std::byte*>(range_of(page).low);
}

// ---- The store ----------------------------------------------------------------------------------

void FaultPages::install_run(Page first, std::span<const std::byte> bytes, bool for_stores) {
  const Page count = bytes.size() / shape_.page_bytes;
  TOMBOLO_CHECK(count != 0 && bytes.size() % shape_.page_bytes == 0,
                "page store: {} bytes for page {}", bytes.size(), first);
  TOMBOLO_CHECK(count <= room(), "page store: no room for page {}", first + room());
  for (Page page = first; page < first + count; ++page)
    TOMBOLO_CHECK(cached_frame(page) == nullptr, "page store: no room for page {}", page);
  // The twin of a page that is stored to is read through the alias, which a store opens early.
  const bool by_alias = count == 1 && (for_stores || for_store_);
  for (Page done = 0; done < count;) {
    const auto rest = bytes.subspan(done * shape_.page_bytes);
    const bool has_memory = frames_.find(first + done) != nullptr || by_alias;
    done += has_memory ? install_with_memory(first + done, rest.first(shape_.page_bytes))
                       : install_new(first + done, rest, for_stores);
  }
}

// One page, which has its memory still, or gets it by the first store. The number of pages.
Page FaultPages::install_with_memory(Page page, std::span<const std::byte> bytes) {
  Frame& frame = frame_for(page);
  copy(bytes, bytes_of(frame));
  frame.note = {};
  become(frame, FrameState::readable);
  return 1;
}

// As many as have no memory, by one call of the kernel. The number of pages.
Page FaultPages::install_new(Page first, std::span<const std::byte> bytes, bool for_stores) {
  const Page most = bytes.size() / shape_.page_bytes;
  Page count = 0;
  for (; count < most && frames_.find(first + count) == nullptr; ++count)
    frames_.move(frame_for(first + count), FrameState::readable);
  host::Access access = for_stores ? host::Access::writable : host::Access::readable;
  must(first,
       memory_->fill(range_of(first, count), bytes.first(count * shape_.page_bytes), access));
  for (Page page = first; page < first + count; ++page) {
    Frame& frame = *frames_.find(page);
    frame.note = {};
    frame.view = access;
    become(frame, FrameState::readable);
  }
  return count;
}

// Its own if that is still there, with its memory; or an unused one.
Frame& FaultPages::frame_for(Page page) {
  if (Frame* const frame = frames_.find(page)) return *frame;
  if (frames_.count(FrameState::unused) == 0) {
    if (frames_.used() < shape_.cached_pages)
      frames_.add();
    else
      reclaim();
  }
  Frame& frame = *frames_.oldest(FrameState::unused);
  frames_.assign(frame, page);
  return frame;
}

// Gives the memory of the pages back that were dropped first; neighbours together.
void FaultPages::reclaim() {
  std::array<Page, most_reclaimed> all;
  std::size_t count = 0;
  while (count < std::max<std::size_t>(reclaimed_, 1) && frames_.count(FrameState::dropped) != 0) {
    Frame& frame = *frames_.oldest(FrameState::dropped);
    all[count++] = frame.page;
    frame.view = host::Access::closed;
    frames_.release(frame);
  }
  const std::span pages = std::span(all).first(count);
  std::ranges::sort(pages);
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin + 1;
    while (end < count && pages[end] == pages[begin] + (end - begin)) ++end;
    must(pages[begin], memory_->discard(range_of(pages[begin], end - begin)));
  }
}

void FaultPages::make_twin(Page page) { copy(frame(page), twin(page)); }

std::vector<Page> FaultPages::cached() const {
  std::vector<Page> pages;
  frames_.append_pages(FrameState::readable, pages);
  frames_.append_pages(FrameState::writable, pages);
  frames_.append_pages(FrameState::left, pages);
  std::ranges::sort(pages);
  return pages;
}

std::vector<Page> FaultPages::written() const {
  std::vector<Page> pages;
  frames_.append_pages(FrameState::writable, pages);
  std::ranges::sort(pages);
  return pages;
}

// DFP3. Three pages at most are passed over.
Page FaultPages::victim() const {
  using Order = std::array<FrameState, 3>;
  constexpr Order clean_first{FrameState::readable, FrameState::writable, FrameState::left};
  constexpr Order clean_last{FrameState::writable, FrameState::left, FrameState::readable};
  const bool enough_clean = frames_.count(FrameState::readable) >= capacity_ / 4;
  const Frame* any = nullptr;
  for (const FrameState state : enough_clean ? clean_first : clean_last)
    for (const Frame* frame = frames_.oldest(state); frame != nullptr;
         frame = frames_.newer(*frame)) {
      if (!missed_lately(frame->page)) return frame->page;
      if (any == nullptr) any = frame;
    }
  TOMBOLO_CHECK(any != nullptr, "page store: no page is cached that could be given up");
  return any->page;
}

// ---- The view -----------------------------------------------------------------------------------

// Ranges to be closed together.
class FaultPages::Closing {
 public:
  explicit Closing(FaultPages& pages) : pages_(pages) {}
  void add(const host::AddressRange& range) {
    if (count_ == ranges_.size()) close();
    ranges_[count_++] = range;
  }
  void close() {
    if (count_ == 0) return;
    const auto page = pages_.page_at(reinterpret_cast<const void*>(ranges_[0].low));
    pages_.must(page, pages_.memory_->close(std::span(ranges_).first(count_)));
    count_ = 0;
  }

 private:
  FaultPages& pages_;
  std::array<host::AddressRange, 512> ranges_;
  std::size_t count_ = 0;
};

void FaultPages::become(Frame& frame, FrameState state) {
  if (frame.state != state) frames_.move(frame, state);
  if (!std::exchange(frame.changing, true))
    changes_.as<FrameTable::Slot>()[changes_count_++] = frames_.slot_of(frame);
  if (calls_ == 0) settle();
}

// Gives the view the accesses of the states. Neighbours that change alike change together.
void FaultPages::settle() {
  if (changes_count_ == 0) return;
  const std::span slots(changes_.as<FrameTable::Slot>(), std::exchange(changes_count_, 0));
  if (slots.size() > 1)
    std::ranges::sort(slots, {}, [&](FrameTable::Slot slot) { return frames_[slot].page; });
  Closing closing(*this);
  for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
    const Frame& first = frames_[slots[begin]];
    const auto goes_on = [&](std::size_t i) {
      const Frame& frame = frames_[slots[i]];
      return frame.page == first.page + (i - begin) && frame.view == first.view &&
             frame.state == first.state;
    };
    end = begin + 1;
    while (end < slots.size() && goes_on(end)) ++end;
    apply(slots.subspan(begin, end - begin), closing);
  }
  closing.close();
}

void FaultPages::apply(std::span<const FrameTable::Slot> run, Closing& closing) {
  const Frame& first = frames_[run.front()];
  const host::Access from = first.view;
  const host::Access to = access_of(first.state);
  const host::AddressRange range = range_of(first.page, run.size());
  if (to == host::Access::closed && from != to)
    closing.add(range);
  else if (from != to)
    must(first.page, memory_->change(range, from, to));
  for (const FrameTable::Slot slot : run) {
    frames_[slot].view = to;
    frames_[slot].changing = false;
  }
}

}  // namespace tombolo::dsm
