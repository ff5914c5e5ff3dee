// SPDX-License-Identifier: Apache-2.0
#include "host/images/own_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "base/check.h"
#include "base/rounding.h"
#include "host/images/write_hold.h"
#include "host/memory/mapping_query.h"
#include "host/memory/memory_room.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

// The pages that hold a byte of the range; none if they would go past the last address.
AddressRange outer_pages(const AddressRange& range) {
  const std::uint64_t page = page_bytes();
  if (range.empty() || range.high > ~std::uint64_t{0} - page) return {};
  return {range.low / page * page, round_up(range.high, page)};
}

// Asked for when the library is loaded: handlers before a fork run in the reverse order, and after
// ours none of a library that came later stores to the heap. The memory is there before them: made
// by another thread between two of them, it would be given back without having been taken.
const bool forks_are_seen =
    (own_memory(),
     pthread_atfork([] { own_memory().before_fork(); }, [] { own_memory().after_fork(false); },
                    [] { own_memory().after_fork(true); }) == 0);

}  // namespace

// The copies of pages for a child, in memory of their own: while they are made and put in place,
// nothing of them may be in a page that is copied, as the heap may. Between the first copy and the
// fork nothing may be allocated or freed: the child's heap would be of two moments.
class OwnMemory::ForChild {
 public:
  // Null without memory.
  static ForChild* make() {
    void* const memory =
        mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) ForChild;
  }

  // Without `wanted` it is not known which the child needs.
  template <class Wanted>
  void list(const std::optional<std::vector<Wanted>>& wanted) {
    count_ = 0;
    complete_ = wanted && wanted->empty();
    if (!wanted || wanted->empty()) return;
    bytes_ = round_up(wanted->size() * sizeof(Piece), page_bytes());
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    pieces_ = static_cast<Piece*>(memory);
    for (const Wanted& want : *wanted)
      pieces_[count_++] = {want.pages, want.offset, want.exact, want.others, nullptr};
    complete_ = true;
  }
  template <class CopyOf>
  void copy(CopyOf&& copy_of) {
    for (std::size_t i = 0; i < count_; ++i)
      if (pieces_[i].exact) pieces_[i].copy = copy_of(pieces_[i].pages, pieces_[i].offset);
  }
  // False if the child would share pages with its parent, or see its stores to other variables.
  template <class Put>
  bool put(Put&& put) {
    for (std::size_t i = 0; i < count_; ++i) {
      const Piece& piece = pieces_[i];
      const bool put_there = put(piece.pages, piece.offset, piece.copy);
      complete_ = complete_ && put_there && (piece.copy != nullptr || !piece.others);
    }
    free_list();
    return complete_;
  }
  void drop() {
    for (std::size_t i = 0; i < count_; ++i)
      if (pieces_[i].copy != nullptr) munmap(pieces_[i].copy, pieces_[i].pages.bytes());
    free_list();
  }

 private:
  struct Piece {
    AddressRange pages;
    std::uint64_t offset;  // in the file
    bool exact;
    bool others;
    std::byte* copy;  // null: the child sees those of the image
  };
  void free_list() {
    if (count_ > 0) munmap(pieces_, bytes_);
    count_ = 0;
  }
  Piece* pieces_ = nullptr;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
  bool complete_ = true;
};
OwnMemory::Use OwnMemory::enter(const void* start, std::uint64_t bytes) {
  const auto low = reinterpret_cast<std::uint64_t>(start);
  Use use;
  use.owner_ = this;
  use.range_ = {low, low + bytes};
  const Lock lock(mutex_);
  ++uses_[use.range_];
  longest_ = std::max(longest_, bytes);
  return use;
}

template <class F>
void OwnMemory::aside(F&& f) {
  if (!stack_) stack_.emplace();
  if (stack_->valid())
    stack_->run(f);
  else
    f();
}

bool OwnMemory::can_share() {
  if (for_child_ == nullptr) for_child_ = ForChild::make();
  return forks_are_seen && for_child_ != nullptr && image_.open().ok();
}

bool OwnMemory::has_image() {
  const Lock lock(mutex_);
  return in_image_.size() > 0;
}

AddressRange OwnMemory::share(const Use& use, Moving moving) {
  const char here = 0;
  const Lock lock(mutex_);
  if (!can_share()) return {};
  if (!stack_) stack_.emplace();
  const std::uint64_t stack = stack_->valid() ? reinterpret_cast<std::uint64_t>(&here) : 0;
  const AddressRange outer = outer_pages(use.range());
  const AddressRange inner = whole_pages(use.range(), page_bytes());
  if (!outer.empty() && move_in(use, outer, moving, outer != inner, stack)) return use.range();
  if (!inner.empty() && outer != inner && move_in(use, inner, moving, false, stack)) return inner;
  return {};
}

// Whether all of the pages are in the image afterwards. `edges`: some hold other variables, too.
bool OwnMemory::move_in(const Use& use, const AddressRange& pages, Moving moving, bool edges,
                        std::uint64_t stack) {
  std::vector<PrivatePages> missing;
  if (!find_private_pages(image_, pages, edges, stack, missing)) return false;
  for (const PrivatePages& part : missing)
    if (uses_of(part.range) > 1) return false;  // OM1
  if (!missing.empty()) {
    const Time began = now_();
    const bool returns = would_return(missing);
    if (returns && !history_.pays(pages)) {  // OM7
      lives_[use.range()] = {began, history_.moving(pages)};
      return false;
    }
    const bool must_hold = edges || moving == Moving::held;
    if (settled_ || moving == Moving::no || (must_hold && !can_hold_writes()) ||
        !may_be_replaced(image_, missing) || would_overcommit(missing))
      return false;
    const auto hold = must_hold ? MemoryImage::Hold::yes : MemoryImage::Hold::if_possible;
    if (!move_in_now(missing, edges, hold).ok())
      return false;  // some may be there until the use ends
    const Time now = now_();
    if (returns) lives_[use.range()] = {now, 2 * (now - began)};  // back takes as long
  }
  if (edges) mixed_.add(pages);  // those that were there, too
  kept_.remove(pages);
  return true;
}

// Where the kernel promises no more memory than there is, it has promised the program's untouched
// pages. It promises none of the image's.
bool OwnMemory::would_overcommit(const std::vector<PrivatePages>& pages) const {
  if (!strict_overcommit(root_)) return false;
  std::uint64_t untouched = 0;
  std::vector<Page> kinds;
  for (const PrivatePages& part : pages) {
    if (!read_pages(part.range, page_bytes(), kinds).ok()) return true;
    untouched += page_bytes() *
                 static_cast<std::uint64_t>(std::count(kinds.begin(), kinds.end(), Page::absent));
  }
  return untouched > most_untouched_bytes;
}

Status OwnMemory::move_in_now(const std::vector<PrivatePages>& pages, bool edges,
                              MemoryImage::Hold hold) {
  for (const PrivatePages& part : pages) {
    spare_.remove(part.range);
    in_image_.add(part.range);
    may_stay_.remove(part.range);
    mixed_.remove(part.range);
    if (part.may_stay) may_stay_.add(part.range);
    if (edges) mixed_.add(part.range);
  }
  Status moved;
  aside([&] {
    for (const PrivatePages& part : pages)
      if (moved.ok()) moved = image_.move_in(part.range, hold, part.of_file);
  });
  return moved;
}

void OwnMemory::leave(const AddressRange& range) {
  const Lock lock(mutex_);
  const auto found = uses_.find(range);
  if (found != uses_.end() && --found->second > 0) return;  // its pages are in use
  if (found != uses_.end()) uses_.erase(found);
  if (const auto life = lives_.extract(range); !life.empty()) {
    const auto lived = now_() - life.mapped().began;
    history_.ended(outer_pages(range), lived, life.mapped().moving);
  }
  let_go(outer_pages(range));
}

// Pages that have perhaps lost their last use.
void OwnMemory::let_go(const AddressRange& pages) {
  RangeSet needed = used_within(pages);
  for (const AddressRange& part : allocated_.parts(pages)) needed.add(part);
  for (const AddressRange& part : kept_.parts(pages)) needed.add(part);
  for (const AddressRange& part : in_image_.parts(pages))
    for (const AddressRange& unused : needed.gaps(part)) move_out(unused);
}

void OwnMemory::settle() {
  const Lock lock(mutex_);
  settled_ = true;
}

// OM5.
Status OwnMemory::may_move_out() const {
  if (settled_) return Status::unsupported("windows of the host MPI may lie over it");
  if (!may_be_registered()) return {};
  return Status::unsupported("devices may know it by its physical address");
}

// OM2, if their use ended now.
bool OwnMemory::would_return(const std::vector<PrivatePages>& pages) const {
  std::uint64_t bytes = 0;
  for (const PrivatePages& part : pages) {
    if (!part.may_stay) return true;
    bytes += part.range.bytes();
  }
  return kept_.bytes() + bytes > most_kept_bytes;
}

// OM2.
void OwnMemory::move_out(const AddressRange& pages) {
  const bool may_stay = may_stay_.gaps(pages).empty() && kept_.size() < most_kept_ranges &&
                        kept_.bytes() + pages.bytes() <= most_kept_bytes;
  if (may_stay) return kept_.add(pages);
  const bool must_hold = mixed_.overlaps(pages);
  const auto hold = must_hold ? MemoryImage::Hold::yes : MemoryImage::Hold::if_possible;
  const Status moved = move_out_now(pages, hold);
  if (moved.ok()) return;
  if (error_.ok()) error_ = moved;
  has_error_.store(true, std::memory_order_relaxed);
}

Status OwnMemory::move_out_now(const AddressRange& pages, MemoryImage::Hold hold) {
  Status moved = may_move_out();
  if (moved.ok()) aside([&] { moved = image_.move_out(pages, hold); });
  if (!moved.ok()) return moved;
  in_image_.remove(pages);
  if (spare_.bytes() + pages.bytes() <= most_spare_bytes)
    spare_.add(pages);
  else
    image_.forget(pages);
  return {};
}

Status OwnMemory::take_error() {
  // Relaxed: the error of a use that this thread has ended was noted by this thread, and that of
  // another thread's is told by its own call, or by the next one.
  if (!has_error_.load(std::memory_order_relaxed)) return {};
  const Lock lock(mutex_);
  has_error_.store(false, std::memory_order_relaxed);
  return std::exchange(error_, {});
}

// Those whose pages overlap the range.
RangeSet OwnMemory::used_within(const AddressRange& range) const {
  RangeSet used;
  const std::uint64_t reach = longest_ + page_bytes();
  const std::uint64_t from = range.low - std::min(range.low, reach);
  for (auto use = uses_.lower_bound({from, 0}); use != uses_.end() && use->first.low < range.high;
       ++use)
    used.add(common_part(outer_pages(use->first), range));
  return used;
}

std::size_t OwnMemory::uses_of(const AddressRange& pages) const {
  const std::uint64_t reach = longest_ + page_bytes();
  const std::uint64_t from = pages.low - std::min(pages.low, reach);
  std::size_t n = 0;
  for (auto use = uses_.lower_bound({from, 0}); use != uses_.end() && use->first.low < pages.high;
       ++use)
    if (outer_pages(use->first).overlaps(pages)) n += use->second;
  return n;
}

// The kernel promises all that a file may hold, which need not be there when it is touched.
bool OwnMemory::has_room(std::uint64_t bytes) {
  if (bytes > most_untouched_bytes && strict_overcommit(root_)) return false;
  const auto now = MemoryGrants::Clock::now();
  if (grants_.take(bytes, now)) return true;
  const MemoryRoom room = memory_room(root_);
  if (bytes > room.bytes) return false;
  grants_.looked(room.bytes, bytes, now);
  return true;
}

void* OwnMemory::allocate(std::uint64_t bytes) {
  const std::uint64_t rounded = round_up(bytes, page_bytes());
  if (bytes == 0 || rounded < bytes) return nullptr;
  const Lock lock(mutex_);
  if (!has_room(rounded) || !can_share()) return nullptr;
  std::byte* const memory = image_.allocate(rounded);
  if (memory == nullptr) return nullptr;
  promise_memory(rounded);
  const auto low = reinterpret_cast<std::uint64_t>(memory);
  in_image_.add({low, low + rounded});
  allocated_.add({low, low + rounded});
  blocks_.emplace(low, low + rounded);
  return memory;
}

bool OwnMemory::free(void* memory) {
  const Lock lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uint64_t>(memory));
  if (found == blocks_.end()) return false;
  const AddressRange pages{found->first, found->second};
  blocks_.erase(found);
  allocated_.remove(pages);
  in_image_.remove(pages);
  kept_.remove(pages);
  image_.release(pages);
  release_promise(pages.bytes());
  return true;
}

void OwnMemory::before_fork() {
  const sigset_t signals = block_signals();
  mutex_.lock();
  signals_ = signals;
  if (for_child_ == nullptr) return;
  move_kept_out();
  for_child_->list(wanted_of_child());
  for_child_->copy([this](const AddressRange& pages, std::uint64_t offset) {
    return image_.copied(pages, offset);
  });
}

// OM4. Other threads may store to the heap until the kernel copies it, and to pages of the image
// after we have copied those: a child's allocator would find blocks that are free in one page and
// not in the next. So pages that need not be in the image are the kernel's to copy. They are held
// while they move only, and not until the fork: a thread that waits for one may have a lock of the
// allocator's, for which the fork itself waits after us.
void OwnMemory::move_kept_out() {
  if (kept_.size() == 0 || other_threads() != OtherThreads::held) return;
  for (const AddressRange& pages : kept_.all())
    for (const AddressRange& unused : used_within(pages).gaps(pages)) {
      if (!move_out_now(unused, MemoryImage::Hold::yes).ok()) return;  // copied as the others
      kept_.remove(unused);
    }
}

// OM4. The kernel is asked for its mappings: programs may have unmapped pages, moved them
// elsewhere, or let them grow. Nothing if it does not tell.
std::optional<std::vector<OwnMemory::Copy>> OwnMemory::wanted_of_child() const {
  std::vector<Mapping> mappings;
  if (!read_shared_files(mappings).ok() && in_image_.size() > 0) return {};
  std::erase_if(mappings, [this](const Mapping& each) { return !image_.is_of_image(each); });
  std::uint64_t bytes = 0;
  for (const Mapping& mapping : mappings) bytes += mapping.range.bytes();
  const bool all_exact = bytes <= most_copied_bytes || !image_.is_open();
  RangeSet owned;
  for (const AddressRange& block : allocated_.all()) owned.add(block);
  for (const auto& [use, times] : uses_) owned.add(whole_pages(use, page_bytes()));
  std::vector<Copy> wanted;
  for (const Mapping& mapping : mappings) {
    const AddressRange home = file_range(mapping);
    const auto want = [&](const AddressRange& part, bool exact, bool others) {
      const std::uint64_t low = mapping.range.low + (part.low - home.low);
      wanted.push_back({{low, low + part.bytes()}, part.low, exact, others});
    };
    const std::vector<AddressRange> others = owned.gaps(home);
    if (all_exact) {
      want(home, true, !others.empty());
      continue;
    }
    for (const AddressRange& part : owned.parts(home)) want(part, false, false);
    for (const AddressRange& part : others) want(part, true, true);
  }
  return wanted;
}

void OwnMemory::after_fork(bool in_child) {
  if (for_child_ != nullptr) {
    if (in_child)
      become_child();
    else
      for_child_->drop();
  }
  const sigset_t signals = signals_;
  mutex_.unlock();
  give_back_signals(signals);
}

void OwnMemory::become_child() {
  const bool own =
      for_child_->put([this](const AddressRange& pages, std::uint64_t offset, std::byte* copy) {
        return image_.leave_in_child(pages, offset, copy);
      });
  TOMBOLO_CHECK(own,
                "fork: no memory for the child's own copy of memory that windows use, or the "
                "kernel does not tell which it is");
  for (RangeSet* set : {&in_image_, &may_stay_, &mixed_, &kept_, &spare_, &allocated_})
    set->abandon();  // another thread may have held the allocator's lock at the fork
  image_.abandon();  // blocks_ stay: the child may free memory that its parent allocated
}

OwnMemory& own_memory() {
  static OwnMemory* const the_memory = new OwnMemory;
  return *the_memory;
}

bool has_own_image() { return own_memory().has_image(); }

int forked_aside(int (*fork)()) {
  OtherStack stack;
  if (!stack.valid()) return fork();
  int process = -1;
  int error = 0;
  stack.run([&] {
    process = fork();
    error = errno;
  });
  errno = error;
  return process;
}

}  // namespace tombolo::host
