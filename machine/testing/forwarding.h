// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine that hands every operation on to another, for tests that change one of them:
// derive from it and write that one anew. A machine itself is no base: one that starts threads in
// its constructor must not be derived from.
//
// Invariants: those of C.
// Thread safety: that of C.
#pragma once

#include "machine/optional.h"

namespace tombolo::machine::testing {

template <Core C>
class Forwarding {
 public:
  using Word = typename C::Word;
  using Attachment = AttachmentOf<C>;
  static constexpr Properties properties = C::properties;
  static std::size_t reserved_sync_bytes(Home cores) { return C::reserved_sync_bytes(cores); }

  explicit Forwarding(const Attachment& attachment) : core_(attachment) {}

  Home self() const { return core_.self(); }
  Home cores() const { return core_.cores(); }
  Word word(SyncPlace place) { return core_.word(place); }
  std::uint64_t load(Word word) { return core_.load(word); }
  void store(Word word, std::uint64_t v) { core_.store(word, v); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return core_.fetch_add(word, v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return core_.exchange(word, v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return core_.compare_exchange(word, expected, desired);
  }
  void fence() { core_.fence(); }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return core_.wait_until(word, predicate);
  }
  Status pause(std::uint64_t ns) { return core_.pause(ns); }
  void notify(Home home) { core_.notify(home); }
  Status read(DataPlace place, void* out, std::size_t bytes) {
    return core_.read(place, out, bytes);
  }
  Status write(DataPlace place, const void* in, std::size_t bytes) {
    return core_.write(place, in, bytes);
  }
  Status write_through(DataPlace place, const void* in, std::size_t bytes) {
    return core_.write_through(place, in, bytes);
  }
  void publish(DataPlace place, std::size_t bytes) { core_.publish(place, bytes); }
  void refresh(DataPlace place, std::size_t bytes) { core_.refresh(place, bytes); }
  void drain() { core_.drain(); }
  std::byte* view(DataPlace place) { return core_.view(place); }
  std::uint64_t data_bytes(Home home) const { return core_.data_bytes(home); }

  // The operations that C offers beyond the contract, and no more.
  static constexpr bool has_views = !HasNoViews<C>;
  static std::size_t shared_bytes(std::span<const DataRegion> regions) requires
      WantsSharedMemory<C> {
    return C::shared_bytes(regions);
  }
  void publish_written(Home home) requires PublishesWritten<C> { core_.publish_written(home); }
  bool refreshes_at_once() const requires RefreshesAtOnce<C> { return core_.refreshes_at_once(); }
  void renew_pieces(Home home, std::span<const DataPiece> pieces) requires ServesPieces<C> {
    core_.renew_pieces(home, pieces);
  }
  Status read_pieces(Home home, std::span<const DataPiece> pieces) requires ServesPieces<C> {
    return core_.read_pieces(home, pieces);
  }
  Status write_pieces_through(Home home,
                              std::span<const DataPiece> pieces) requires ServesPieces<C> {
    return core_.write_pieces_through(home, pieces);
  }
  std::byte* view(DataPlace place, std::size_t bytes) requires ViewsRanges<C> {
    return core_.view(place, bytes);
  }
  void store_alone(Word word, std::uint64_t v) requires StoresAlone<C> {
    core_.store_alone(word, v);
  }
  void settle() requires DefersStores<C> { core_.settle(); }
  bool fences_asymmetrically() requires FencesAsymmetrically<C> {
    return core_.fences_asymmetrically();
  }
  void fence_light() requires FencesAsymmetrically<C> { core_.fence_light(); }
  void fence_heavy() requires FencesAsymmetrically<C> { core_.fence_heavy(); }
  Status sleep_on(Word word, std::uint64_t seen) requires SleepsOnWords<C> {
    return core_.sleep_on(word, seen);
  }
  void wake_sleepers(Word word, std::uint32_t most) requires SleepsOnWords<C> {
    core_.wake_sleepers(word, most);
  }
  void several_threads() requires IsToldOfThreads<C> { core_.several_threads(); }
  void set_site(std::uint64_t site) requires NamesSites<C> { core_.set_site(site); }
  void hand_back() requires KeepsViewsApart<C> { core_.hand_back(); }
  void check_promise(Promise promise) requires TellsLosses<C> { core_.check_promise(promise); }
  void close() requires TellsLosses<C> { core_.close(); }
  std::vector<LossFact> take_losses() requires TellsLosses<C> { return core_.take_losses(); }
  void losses_told() requires TellsLosses<C> { core_.losses_told(); }
  bool has_mistakes() requires TellsLosses<C> { return core_.has_mistakes(); }
  const auto& findings() const requires TellsLosses<C> { return core_.findings(); }

 private:
  C core_;
};

}  // namespace tombolo::machine::testing
