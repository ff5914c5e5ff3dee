// SPDX-License-Identifier: Apache-2.0
// Purpose: which of this process's memory peers may reach by its address, through which windows,
// and which of it is in the image that they can map (memory_image.h): moved there for a window,
// back when no window uses it, and private to the children of a fork.
//
//   OwnMemory::Use use = own_memory().enter(base, bytes);
//   const AddressRange part = own_memory().share(use);
//   if (!part.empty()) offer(own_memory().image(), part);
//
// Invariants: OM1 pages are moved in only while no other use overlaps them, and back only while no
//                 use does: a peer's write by the kernel's copies would be lost.
//             OM2 pages that no use overlaps any more move back, but for up to `most_kept_bytes` of
//                 those that may stay (PrivatePages::may_stay): the next window over them costs
//                 nothing.
//             OM3 the image keeps the memory of up to `most_spare_bytes` of pages that moved back:
//                 to move them in again costs a copy only.
//             OM4 a forked child has its own copy of all pages in the image before it runs on, as
//                 of any memory. Of more than `most_copied_bytes`, and without memory for a copy,
//                 those that one use or allocation covers follow the parent's stores until the
//                 child stores to them; the child's stores are its own. A child that would follow
//                 those to other variables ends with a message. Where other threads store
//                 meanwhile, pages without a use are of one moment with the rest of the child's
//                 memory; those in use are copied some moments earlier.
//             OM5 pages stay where they are once devices or other libraries may know them.
//             OM6 a thread that holds the lock is interrupted by no signal handler of the program,
//                 which might fork.
//             OM7 pages that would move back with their use do not move where it did not pay lately
//                 (move_history.h): the kernel takes some microseconds for each.
// Thread safety: yes.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/images/memory_image.h"
#include "host/images/move_history.h"
#include "host/images/shareable.h"
#include "host/memory/address_space.h"
#include "host/memory/memory_grants.h"
#include "host/memory/range_set.h"
#include "host/processes/no_signals.h"
#include "host/stacks/other_stack.h"

namespace tombolo::host {

class OwnMemory {
 public:
  static constexpr std::uint64_t most_kept_bytes = std::uint64_t{16} << 20;
  static constexpr std::size_t most_kept_ranges = 256;
  static constexpr std::uint64_t most_spare_bytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t most_untouched_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t most_copied_bytes = std::uint64_t{64} << 20;

  using Time = std::chrono::steady_clock::time_point;
  // `root` replaces "/", and `now` the clock, in tests.
  explicit OwnMemory(std::string root = "/", Time (*now)() = &std::chrono::steady_clock::now)
      : root_(std::move(root)), now_(now) {}

  // A range that peers may reach, from enter() to its destruction.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept { *this = std::move(other); }
    Use& operator=(Use&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(range_, other.range_);
      return *this;
    }
    ~Use() { end(); }
    const AddressRange& range() const { return range_; }
    void end() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->leave(range_);
    }

   private:
    friend class OwnMemory;
    OwnMemory* owner_ = nullptr;
    AddressRange range_;
  };

  Use enter(const void* start, std::uint64_t bytes);

  enum class Moving : std::uint8_t {
    no,    // peers may reach the memory in ways that are not known here
    held,  // only while other threads are kept from storing
    yes,   // the program has no other threads; those of libraries store to other variables only
  };
  // Moves the pages of the use's range to the image, if they may be. The part of the range that is
  // there, until the use ends: all of it, its whole pages, or nothing.
  AddressRange share(const Use& use, Moving moving = Moving::yes);
  // Where share() has moved the part. To be called by a thread that has been given one: the name
  // was complete before, and stays in this process, so that this takes no lock.
  const ImageName& image() const { return image_.name(); }
  // Some pages are in the image.
  bool has_image();

  // Memory that is in the image from the start, for windows to come: zeros, on whole pages. Null if
  // the host has not as much left; the caller has other memory then, or none.
  void* allocate(std::uint64_t bytes);
  // False if allocate() has not given it.
  bool free(void* memory);

  // From now on nothing moves: other libraries have been given the program's memory.
  void settle();

  // The first error since the last call that kept memory from being given back. The memory stays
  // shared, with its contents.
  Status take_error();

  // For pthread_atfork().
  void before_fork();
  void after_fork(bool in_child);

 private:
  struct ByStart {
    bool operator()(const AddressRange& a, const AddressRange& b) const {
      return a.low != b.low ? a.low < b.low : a.high < b.high;
    }
  };
  // Pages for a child.
  struct Copy {
    AddressRange pages;
    std::uint64_t offset;  // in the image's file
    bool exact;            // as they are before the fork
    bool others;           // some hold other variables: the child must have a copy
  };

  class ForChild;

  // OM6.
  class Lock {
   public:
    explicit Lock(std::mutex& mutex) : lock_(mutex) {}

   private:
    const NoSignals none_;
    const std::lock_guard<std::mutex> lock_;
  };

  bool can_share();
  bool has_room(std::uint64_t bytes);
  bool would_overcommit(const std::vector<PrivatePages>& pages) const;
  void leave(const AddressRange& range);
  std::size_t uses_of(const AddressRange& range) const;
  RangeSet used_within(const AddressRange& range) const;
  // A use whose pages move back with it, or would if they moved.
  struct Life {
    Time began;
    MoveHistory::Duration moving;  // there and back
  };
  bool move_in(const Use& use, const AddressRange& pages, Moving moving, bool edges,
               std::uint64_t stack);
  bool would_return(const std::vector<PrivatePages>& pages) const;
  Status move_in_now(const std::vector<PrivatePages>& pages, bool edges, MemoryImage::Hold hold);
  void let_go(const AddressRange& pages);
  Status may_move_out() const;
  void move_out(const AddressRange& pages);
  Status move_out_now(const AddressRange& pages, MemoryImage::Hold hold);
  void move_kept_out();
  // Runs f where no store of its own goes to pages that move.
  template <class F>
  void aside(F&& f);
  std::optional<std::vector<Copy>> wanted_of_child() const;
  void become_child();

  const std::string root_;
  Time (*const now_)();
  std::mutex mutex_;
  std::map<AddressRange, std::size_t, ByStart> uses_;  // how many of a range
  std::uint64_t longest_ = 0;                          // of all uses that ever were
  MemoryImage image_;
  MoveHistory history_;
  std::map<AddressRange, Life, ByStart> lives_;
  RangeSet in_image_;  // moved there or allocated there, though the program may have unmapped some
  RangeSet may_stay_;
  RangeSet mixed_;  // pages of uses and of other variables, which other threads may store to
  RangeSet kept_;   // without a use
  RangeSet spare_;  // that have moved back
  RangeSet allocated_;
  std::map<std::uint64_t, std::uint64_t> blocks_;  // of allocate(): ends, by start
  std::optional<OtherStack> stack_;
  ForChild* for_child_ = nullptr;  // never freed
  sigset_t signals_{};             // that the forking thread has blocked
  bool settled_ = false;
  MemoryGrants grants_;
  Status error_;
  std::atomic<bool> has_error_{false};
};

// That of this process; never destroyed, so that the end of a forked child changes nothing.
OwnMemory& own_memory();
// Some pages of it are in the image. For signal handlers, too.
bool has_own_image();

// fork() as `fork` does it, on another stack than the caller's if there is memory for one, since
// the pages of the caller's may be in the image.
int forked_aside(int (*fork)());

}  // namespace tombolo::host
