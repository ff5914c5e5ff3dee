// SPDX-License-Identifier: Apache-2.0
// Purpose: brings pages into the cache of this thread: from their homes, or from the threads that
// keep them. Neighbours are got one by one and given to the page store together, which opens them
// by one call of the kernel.
//
// Without a keeper: two loads and a get. With one, two loads, the page's mutex and a get, and
// another get if the home has differences of other threads. The first reader since the keeper's
// last notice gives the keeper one.
//
// Invariants: DPF1 the page has all changes up to the version in its note: the version is loaded
//                  before the keeper is looked for, and that before the bytes are got (DPD1). It
//                  may have later ones, whose version is raised only then, and lack those of a
//                  thread that has begun to keep it since.
//             DPF2 a kept page is got under its mutex: its parts are of one keeper, and no
//                  difference is in both or in none.
//             DPF3 a thread that holds the mutexes of several pages has taken them in ascending
//                  order, and no thread waits for another page's mutex otherwise.
//             DPF4 a page that had no keeper is got without its mutex. Where a thread may begin to
//                  keep a page outside of barriers, in place, its home may become the differences
//                  of others meanwhile, which are no page. Then its version is raised before its
//                  mutex is free (DPS2): a page that has neither a keeper nor another version
//                  behind the get was the page all the time, and any other is got again.
//             DPF5 where pages are patched by notices (release.h), others than the next holder of a
//                  lock read these: a page that was got with bytes of later versions than the next
//                  one would have older ones after its patch. It is got again.
//             DPF6 a page that others change again and again is got under its mutex after a few
//                  tries, where its version is raised (DPS2): a reader comes to an end.
// Thread safety: one thread for each object.
#pragma once

#include <optional>

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/page_directory.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/reader_notices.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm {

template <Transport T, PageStore S>
class PageFetch {
 public:
  using Core = typename T::Core;
  // `patched`: pages are patched by notices (DPF5).
  PageFetch(T& transport, S& store, PageDirectory<Core>& directory, ReaderNotices<Core>& readers,
            bool patched)
      : transport_(transport),
        store_(store),
        directory_(directory),
        readers_(readers),
        looks_again_(patched || store.in_place()) {}

  // Into a store that has room, as all of these.
  Status fetch(Page page) { return fetch_run(page, 1, false); }

  // `count` neighbours.
  Status fetch_run(Page first, Page count, bool for_stores) {
    expect(count);
    for (Page i = 0; i < count; ++i) TOMBOLO_TRY(get_whole(first + i, place(i), versions_[i]));
    install(first, count, for_stores);
    return {};
  }

  // Likewise for stores; this thread is the keeper of those that have none from now on: others may
  // have copies of them.
  Status fetch_run_to_keep(Page first, Page count) {
    expect(count);
    for (Page done = 0; done < count;) {
      Page free = 0;
      TOMBOLO_TRY(lock_without_keeper(first + done, count - done, free));
      TOMBOLO_TRY(keep(first + done, free));
      done += free;
      if (done == count) break;
      TOMBOLO_TRY(fetch_run(first + done, 1, true));
      ++done;
    }
    return {};
  }

 private:
  static constexpr int most_tries = 4;

  // The first `free` of them have no keeper, and are locked (DPF3).
  Status lock_without_keeper(Page first, Page count, Page& free) {
    for (free = 0; free < count; ++free) {
      TOMBOLO_TRY(directory_.lock(first + free));
      if (!directory_.keeper(first + free)) continue;
      directory_.unlock(first + free);
      break;
    }
    return {};
  }

  // Pages that are locked and have no keeper.
  Status keep(Page first, Page count) {
    if (count == 0) return {};
    for (Page i = 0; i < count; ++i) {
      versions_[i] = directory_.version(first + i);
      TOMBOLO_TRY(transport_.get(first + i, place(i)));
    }
    install(first, count, true);
    for (Page page = first; page < first + count; ++page) {
      PageNote& note = *store_.lookup(page);
      note.kept = true;
      note.shared = true;
      // Its content is in place before another thread finds its keeper (DPF2).
      directory_.set_keeper(page, {.thread = transport_.core().self(), .slot = store_.slot(page)});
      directory_.unlock(page);
    }
    return {};
  }

  void expect(Page count) {
    if (versions_.size() >= count) return;
    versions_.resize(count);
    buffer_.resize(count * transport_.shape().page_bytes);
  }
  std::span<std::byte> place(Page i) {
    const std::size_t bytes = transport_.shape().page_bytes;
    return std::span(buffer_).subspan(i * bytes, bytes);
  }
  void install(Page first, Page count, bool for_stores) {
    store_.install_run(first, std::span(buffer_).first(count * transport_.shape().page_bytes),
                       for_stores);
    for (Page i = 0; i < count; ++i) *store_.lookup(first + i) = {.version = versions_[i]};
  }

  // DPF6.
  Status get_whole(Page page, std::span<std::byte> out, std::uint64_t& version) {
    bool got = false;
    for (int tries = 0; !got && tries < most_tries; ++tries)
      TOMBOLO_TRY(get(page, out, version, got));
    return got ? Status() : get_locked(page, out, version);
  }

  // Not `got`: it has changed meanwhile (DPF5), or a thread has begun to keep it (DPF4).
  Status get(Page page, std::span<std::byte> out, std::uint64_t& version, bool& got) {
    version = directory_.version(page);
    got = true;
    if (directory_.keeper(page)) return get_locked(page, out, version);
    TOMBOLO_TRY(transport_.get(page, out));
    got = is_as_then(page, version);
    return {};
  }

  // DPF4, DPF5. The version comes last: a keeper that has gone before has raised it.
  bool is_as_then(Page page, std::uint64_t version) {
    if (store_.in_place() && directory_.keeper(page)) return false;
    return !looks_again_ || directory_.version(page) == version;
  }

  // From its keeper, or from its home if it has none (any more). Under the mutex the page is not
  // changed, and no thread begins or ends to keep it.
  Status get_locked(Page page, std::span<std::byte> out, std::uint64_t& version) {
    TOMBOLO_TRY(directory_.lock(page));
    TOMBOLO_TRY(get_from(directory_.keeper(page), page, out, version));
    directory_.unlock(page);
    return {};
  }
  Status get_from(const std::optional<Keeper>& keeper, Page page, std::span<std::byte> out,
                  std::uint64_t& version) {
    if (keeper) return get_from_keeper(*keeper, page, out, version);
    version = directory_.version(page);
    return transport_.get(page, out);
  }

  Status get_from_keeper(Keeper keeper, Page page, std::span<std::byte> out,
                         std::uint64_t& version) {
    TOMBOLO_CHECK(keeper.thread != transport_.core().self(),
                  "virtual shared memory: thread {} keeps page {} and has not cached it",
                  keeper.thread, page);
    if (store_.in_place() && !keeper.shared) {
      keeper.shared = true;
      directory_.set_keeper(page, keeper);
      TOMBOLO_TRY(readers_.give(keeper.thread, page));
    }
    version = directory_.version(page);
    TOMBOLO_TRY(transport_.get_exposed(keeper.thread, keeper.slot, out));
    if (!keeper.mixed) return {};
    home_.resize(out.size());
    TOMBOLO_TRY(transport_.get(page, home_));
    apply_difference(home_, out);
    return {};
  }

  T& transport_;
  S& store_;
  PageDirectory<Core>& directory_;
  ReaderNotices<Core>& readers_;
  const bool looks_again_;  // whether a page has changed while it was got
  PageBytes buffer_;        // of neighbours, as `versions_`
  std::vector<std::uint64_t> versions_;
  PageBytes home_;
};

}  // namespace tombolo::dsm
