// SPDX-License-Identifier: Apache-2.0
// Purpose: the one-sided engine on a machine C: communication, epochs, and the coherence of the
// data managed inside the synchronization calls (000 section 4.2), extended to passive targets.
//
//   origin   a put is written through and in memory after drain: at flush, unlock, complete, fence
//            a get refreshes the range that it reads, just before
//   target   post, fence, unlock, sync publish the program's stores into its own region;
//            wait, fence, lock, sync refresh it
//
// Short calls that programs repeat are marked hot: they lie together, so that one after a long
// computation finds its code on a few pages. The long ones, which are pages by themselves, are not.
//
// Invariants: EN1 to EN5 of windows/engine.h, and
//             WD1 every announcement to a peer (a lock released, a counter decremented, a barrier
//                 entered) comes after a drain and a publish.
// Thread safety: as EngineOptions::threads says; with threads, the epoch state is guarded, blocking
// waits are not, so that a thread that waits keeps no other from its work.
#pragma once

#include <algorithm>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "machine/optional.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/epochs/active_target.h"
#include "sync/locks/backoff.h"
#include "sync/locks/families.h"
#include "windows/atomic_updates.h"
#include "windows/engine.h"
#include "windows/epochs.h"
#include "windows/own_copies.h"
#include "windows/pieces.h"

namespace tombolo::windows {

template <machine::Core C>
class alignas(64) Window final : public Engine {
  // The bias costs an atomic and two loads more where it ends: too expensive where atomics are
  // emulated.
  static constexpr bool has_atomics = C::properties.native_atomics == machine::Atomics::full;
  template <class Family>
  using LocksOf =
      typename std::conditional_t<has_atomics && Family::traits.reader_bias,
                                  sync::BiasedFamily<Family>, Family>::template Locks<C>;

  // For the list of families. In the variant, monostate is for before the constructor has chosen.
  template <class... Families>
  struct Of {
    using Locks = std::variant<std::monostate, LocksOf<Families>...>;
    using Layouts = std::tuple<typename LocksOf<Families>::Layout...>;
    static Layouts take(machine::SyncLayout& sync, Home cores) {
      return Layouts{LocksOf<Families>::take(sync, cores)...};
    }
  };
  using LockFamilies = sync::WindowLockFamilies::apply<Of>;
  using Locks = typename LockFamilies::Locks;
  using DefaultLocks = std::variant_alternative_t<1, Locks>;

 public:
  // Bytes of sync memory that each process contributes.
  static std::size_t sync_bytes(Home cores) { return Layouts::take(cores).total; }

  Window(machine::AttachmentOf<C> attachment, const EngineOptions& options)
      : threads_(options.threads),
        memory_moves_on_(options.memory_moves_on),
        program_reads_peers_(options.program_reads_peers),
        all_mapped_(all_mapped(attachment)),
        core_(checked(std::move(attachment))),
        layouts_(Layouts::take(core_.cores())),
        barrier_(core_, layouts_.barrier),
        active_(core_, layouts_.active),
        own_(core_, layouts_.own, options.program_reads_peers, options.threads),
        updates_(core_, layouts_.updates, own_, options.atomic_bytes, all_mapped_) {
    if constexpr (machine::IsToldOfThreads<C>)
      if (threads_ || options.threads_in_turn) core_.several_threads();
    sync::LockOptions lock_options{.backoff = options.backoff, .threads = options.threads};
    if (!options.reader_bias) lock_options.bias_after = 0;
    make_locks(options.locks, lock_options);
  }

  C& core() { return core_; }

  [[gnu::hot]] Status put(Home target, Offset at, const void* from, std::size_t bytes) override {
    if (!is_entered(target)) [[unlikely]]
      return enter_and_put(target, at, from, bytes);
    return put_entered(target, at, from, bytes);
  }

  [[gnu::hot]] Status get(Home target, Offset at, void* to, std::size_t bytes) override {
    if (!is_entered(target)) [[unlikely]]
      return enter_and_get(target, at, to, bytes);
    return get_entered(target, at, to, bytes);
  }

  Status put_runs(Home target, std::span<const ByteRun> runs) override {
    TOMBOLO_TRY(enter(target));
    const Settle settle(core_);
    Status status = write_pieces_through(core_, target, runs);
    wrote_to(target);
    return status;
  }

  Status get_runs(Home target, std::span<const ByteRun> runs) override {
    TOMBOLO_TRY(enter(target));
    const Settle settle(core_);
    return read_pieces_anew(core_, target, runs, own_.stored_to(target));
  }

  Status put_in_place(Home target, const Reach& reach, Copy copy, void* context,
                      bool& done) override {
    TOMBOLO_TRY(enter(target));
    std::byte* const memory = in_place({target, reach.at}, reach.bytes);
    done = memory != nullptr;
    if (!done) return {};
    const Settle settle(core_);
    copy(context, memory);  // not noted: peers of a coherent machine need not be told of puts
    return {};
  }

  Status get_in_place(Home target, const Reach& reach, Copy copy, void* context,
                      bool& done) override {
    TOMBOLO_TRY(enter(target));
    std::byte* const memory = readable_in_place(target, reach);
    done = memory != nullptr;
    if (!done) return {};
    const Settle settle(core_);
    if constexpr (renews_in_place) {
      // As for get_runs(), all lines between the pieces included.
      const machine::DataPiece all{reach.at, nullptr, reach.bytes};
      core_.renew_pieces(target, {&all, 1});
    } else {
      // As for get(). No publish before it: it does not lose the program's stores on a coherent
      // machine.
      core_.refresh({target, reach.at}, reach.bytes);
    }
    copy(context, memory);
    return {};
  }

  Status accumulate(Home target, Offset at, Op op, Element element, const void* from,
                    std::size_t count) override {
    return update(target, at, op, element, from, nullptr, count);
  }

  Status get_accumulate(Home target, Offset at, Op op, Element element, const void* from,
                        void* result, std::size_t count) override {
    return update(target, at, op, element, from, result, count);
  }

  Status accumulate_runs(Home target, std::span<const ElementRun> runs, Op op, Element element,
                         const void* from, void* result) override {
    TOMBOLO_TRY(enter(target));
    const Settle settle(core_);
    Status status = updates_.update_runs(target, runs, op, element, from, result);
    if (op != Op::no_op) wrote_to(target);
    return status;
  }

  Status compare_and_swap(Home target, Offset at, Element element, const void* compare,
                          const void* desired, void* result) override {
    TOMBOLO_TRY(enter(target));
    const Settle settle(core_);
    Status status = updates_.compare_and_swap({target, at}, element, compare, desired, result);
    wrote_to(target);
    return status;
  }

  [[gnu::hot]] Status fence(Assertions promise) override {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_fence());
      epochs_.fenced(!promise.no_succeed);
    }
    const Settle settle(core_);
    if (promises_no_store(promise))
      own_.check_no_store();
    else
      own_.publish_all();  // peers may get its stores (EN5)
    // A promise of no_precede says that there is nothing to drain; it may be wrong for less than a
    // drain costs, hence no exception for it.
    core_.drain();  // peers look at our puts after the barrier (WD1)
    {
      const Guard guard(*this);  // other threads may put meanwhile
      own_.announce_puts();
    }
    TOMBOLO_TRY(barrier_.arrive_and_wait());
    // The program may look at the puts of others into its region (EN5), unless the previous fence
    // promised that there are none; puts before that one were refreshed there.
    if (fence_no_put_)
      own_.check_no_put();
    else
      own_.refresh_all();
    fence_no_put_ = promises_no_put(promise);
    own_.fence_ended();
    return {};
  }

  Status post(std::span<const Home> origins, Assertions promise) override {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_post());
      epochs_.post();
    }
    const Settle settle(core_);
    if (promises_no_store(promise))
      own_.check_no_store();
    else
      own_.publish_all();  // origins may get its stores (EN5)
    post_no_put_ = promises_no_put(promise);
    // The wait will not do it, and the promise says nothing of earlier puts.
    if (post_no_put_) own_.refresh_all();
    active_.post(origins, !promise.no_check);
    return {};
  }

  Status start(std::span<const Home> targets, Assertions promise) override {
    const Guard guard(*this);
    TOMBOLO_TRY(epochs_.may_start());
    // Trigger-only (000 section 3.2.3): a target is waited for only at the first communication with
    // it. No refresh here: each get refreshes the range that it reads.
    epochs_.start(targets, !promise.no_check);
    return {};
  }

  Status complete() override {
    const Settle settle(core_);
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_complete());
    }
    core_.drain();  // our puts are in memory before the targets hear that we are done (WD1)
    {
      const Guard guard(*this);  // other threads may put meanwhile
      own_.announce_puts();
    }
    TOMBOLO_TRY(active_.complete(epochs_.started(), epochs_.start_checked()));
    const Guard guard(*this);
    epochs_.complete();
    return {};
  }

  Status wait() override {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_wait());
    }
    const Settle settle(core_);
    TOMBOLO_TRY(active_.wait());
    const Guard guard(*this);  // other threads communicate meanwhile
    exposure_ended();
    return {};
  }

  Status test(bool& done) override {
    const Guard guard(*this);
    TOMBOLO_TRY(epochs_.may_wait());
    const Settle settle(core_);
    done = active_.test();
    if (done) exposure_ended();
    return {};
  }

  [[gnu::hot]] Status lock(sync::Access access, Home target, Assertions promise) override {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_lock(target));
    }
    const Settle settle(core_);
    if (!promise.no_check)
      TOMBOLO_TRY(with_locks([=](auto& locks) { return locks.lock(access, target); }));
    own_.refresh_all();  // the program may look at the puts of others into its region (EN5)
    const Guard guard(*this);
    epochs_.lock({target, access, !promise.no_check});
    return {};
  }

  [[gnu::hot]] Status unlock(Home target) override {
    const Guard guard(*this);
    const Epochs::Held* held = nullptr;
    TOMBOLO_TRY(epochs_.may_unlock(target, held));
    const Settle settle(core_);
    end_passive_epoch();
    if (held->taken) with_locks([=](auto& locks) { locks.unlock(held->access, target); });
    epochs_.unlock(target);
    return {};
  }

  [[gnu::hot]] Status lock_all(Assertions promise) override {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.may_lock_all());
    }
    const Settle settle(core_);
    if (!promise.no_check) TOMBOLO_TRY(with_locks([](auto& locks) { return locks.lock_all(); }));
    own_.refresh_all();  // the program may look at the puts of others into its region (EN5)
    const Guard guard(*this);
    epochs_.lock_all(!promise.no_check);
    return {};
  }

  [[gnu::hot]] Status unlock_all() override {
    const Guard guard(*this);
    TOMBOLO_TRY(epochs_.may_unlock_all());
    const Settle settle(core_);
    end_passive_epoch();
    if (epochs_.all_taken()) with_locks([](auto& locks) { locks.unlock_all(); });
    epochs_.unlock_all();
    return {};
  }

  [[gnu::hot]] Status flush(Home target) override {
    const Guard guard(*this);
    TOMBOLO_TRY(epochs_.may_flush(target));
    complete_puts();
    return {};
  }
  [[gnu::hot]] Status flush_all() override {
    const Guard guard(*this);
    TOMBOLO_TRY(epochs_.may_flush());
    complete_puts();
    return {};
  }
  // Local completion: put has copied the origin's bytes when it returns, so there is nothing to do
  // and no drain, which only remote completion needs.
  [[gnu::hot]] Status flush_local(Home target) override {
    const Guard guard(*this);
    return epochs_.may_flush(target);
  }
  [[gnu::hot]] Status flush_local_all() override {
    const Guard guard(*this);
    return epochs_.may_flush();
  }

  Status sync() override {
    const Settle settle(core_);
    own_.publish_all();  // EN5
    // The look whether there is something to refresh must not overtake the publish (R3); and on
    // shared memory windows the program orders its own loads and stores by us.
    core_.fence();
    own_.refresh_all();  // EN5
    return {};
  }

  void set_site(std::uint64_t site) override {
    if constexpr (machine::NamesSites<C>) core_.set_site(site);
  }
  void close() override {
    // Another host may be given the memory next: a late write-back would overwrite its data.
    if (memory_moves_on_) own_.publish_all();
    if constexpr (machine::TellsLosses<C>)
      core_.close();
    else
      core_.drain();  // of an epoch that the program left open: others look at their memory (EN6)
  }
  void hand_back() override {
    // On all other machines the program's memory is the region's, and no cache keeps bytes of it.
    if constexpr (machine::KeepsViewsApart<C>) core_.hand_back();
  }
  std::vector<machine::LossFact> take_losses() override {
    if constexpr (machine::TellsLosses<C>) return core_.take_losses();
    return {};
  }
  void losses_told() override {
    if constexpr (machine::TellsLosses<C>) core_.losses_told();
  }
  bool has_mistakes() override {
    if constexpr (machine::TellsLosses<C>) return core_.has_mistakes();
    return false;
  }

  Status barrier() override {
    const Settle settle(core_);
    return barrier_.arrive_and_wait();
  }
  Status may_sync() override {
    const Guard guard(*this);
    return epochs_.may_sync();
  }
  Status closable() override {
    const Guard guard(*this);
    return epochs_.may_close();
  }
  std::byte* view(Home home) override {
    if constexpr (machine::ViewsRanges<C>)
      return core_.view({home, 0}, core_.data_bytes(home));
    else
      return core_.view({home, 0});
  }

 private:
  struct Layouts {
    typename sync::DisseminationBarrier<C>::Layout barrier;
    typename sync::ActiveTarget<C>::Layout active;
    typename AtomicUpdates<C>::Layout updates;
    typename OwnCopies<C>::Layout own;
    typename LockFamilies::Layouts locks;
    std::size_t total;

    static Layouts take(Home cores) {
      machine::SyncLayout sync(C::reserved_sync_bytes(cores));
      Layouts layouts{.barrier = sync::DisseminationBarrier<C>::take(sync, cores),
                      .active = sync::ActiveTarget<C>::take(sync, cores),
                      .updates = AtomicUpdates<C>::take(sync),
                      .own = OwnCopies<C>::take(sync),
                      .locks = LockFamilies::take(sync, cores),
                      .total = 0};
      layouts.total = sync.bytes();
      return layouts;
    }
  };

  // Out of line, so that calls of a single thread are short.
  [[gnu::noinline]] void lock_state() { mutex_.lock(); }
  [[gnu::noinline]] void unlock_state() { mutex_.unlock(); }

  // Guards the epoch state if the process has several threads.
  class Guard {
   public:
    explicit Guard(Window& window) : window_(window) {
      if (window_.threads_) [[unlikely]]
        window_.lock_state();
    }
    ~Guard() {
      if (window_.threads_) [[unlikely]]
        window_.unlock_state();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Window& window_;
  };

  static machine::AttachmentOf<C> checked(machine::AttachmentOf<C> attachment) {
    TOMBOLO_CHECK(attachment.sync_bytes_per_home >= sync_bytes(attachment.cores),
                  "window: {} bytes of sync memory per process, {} are needed",
                  attachment.sync_bytes_per_home, sync_bytes(attachment.cores));
    return attachment;
  }

  static bool all_mapped(const machine::Attachment& attachment) {
    return std::all_of(attachment.data.begin(), attachment.data.end(),
                       [](const machine::DataRegion& region) {
                         return region.memory != nullptr || region.bytes == 0;
                       });
  }

  // At the end of a call, on machines that may hold back stores to sync words: the program may now
  // compute for long without calling us, while a peer waits for such a store.
  class Settle {
   public:
    explicit Settle(C& core) : core_(core) {}
    ~Settle() {
      if constexpr (machine::DefersStores<C>) core_.settle();
    }
    Settle(const Settle&) = delete;
    Settle& operator=(const Settle&) = delete;

   private:
    C& core_;
  };

  // Null where plain loads and stores are not the way to a peer's bytes.
  // Memory that is not coherent can be read where it is, once its lines are renewed at one stroke:
  // as in get_runs(), but without a list.
  static constexpr bool renews_in_place = !C::properties.coherent && machine::ServesPieces<C> &&
                                          !machine::HasNoViews<C> && !machine::KeepsViewsApart<C>;
  // No more lines than there are numbers of 8 bytes.
  static constexpr std::size_t most_reach_of_a_byte = C::properties.line_bytes / 8;

  std::byte* readable_in_place(Home target, const Reach& reach) {
    if constexpr (renews_in_place)
      return reach.bytes <= most_reach_of_a_byte * reach.data ? core_.view({target, reach.at})
                                                              : nullptr;
    else
      return in_place({target, reach.at}, reach.bytes);
  }

  std::byte* in_place(machine::DataPlace place, std::size_t bytes) {
    if constexpr (C::properties.coherent && machine::ViewsRanges<C>)
      return core_.view(place, bytes);
    return nullptr;
  }

  [[gnu::always_inline]] Status read_anew(machine::DataPlace place, void* to, std::size_t bytes) {
    // The program's own stores in the range are not ours to lose by the refresh.
    if (own_.stored_to(place.home)) core_.publish(place, bytes);
    // Others may have put there since this core last read these lines (EN4).
    core_.refresh(place, bytes);
    return core_.read(place, to, bytes);
  }

  // True in most calls: enter() has nothing to do. Short calls ask first; with no other function
  // left to call they save no registers.
  [[gnu::always_inline]] bool is_entered(Home target) const {
    return !threads_ && epochs_.in_use(target);
  }
  [[gnu::noinline]] Status enter_and_put(Home target, Offset at, const void* from,
                                         std::size_t bytes) {
    TOMBOLO_TRY(enter(target));
    return put_entered(target, at, from, bytes);
  }
  [[gnu::always_inline]] Status put_entered(Home target, Offset at, const void* from,
                                            std::size_t bytes) {
    if (bytes == 0) return {};  // `from` may be null
    const Settle settle(core_);
    Status status = core_.write_through({target, at}, from, bytes);
    wrote_to(target);
    return status;
  }
  [[gnu::noinline]] Status enter_and_get(Home target, Offset at, void* to, std::size_t bytes) {
    TOMBOLO_TRY(enter(target));
    return get_entered(target, at, to, bytes);
  }
  [[gnu::always_inline]] Status get_entered(Home target, Offset at, void* to, std::size_t bytes) {
    if (bytes == 0) return {};  // `to` may be null
    const Settle settle(core_);
    return read_anew({target, at}, to, bytes);
  }

  // Checks the epoch of a communication call; with start, waits for the target's post
  // (trigger-only).
  [[gnu::always_inline]] Status enter(Home target) {
    {
      const Guard guard(*this);
      TOMBOLO_TRY(epochs_.use(target));
      if (epochs_.kind() != Epochs::Kind::start || !epochs_.start_checked()) [[likely]]
        return {};
    }
    return await_post(target);
  }

  // Twice in line: without a result there is less to do.
  [[gnu::always_inline]] Status update(Home target, Offset at, Op op, Element element,
                                       const void* from, void* result, std::size_t count) {
    TOMBOLO_TRY(enter(target));
    const Settle settle(core_);
    Status status = updates_.update({target, at}, op, element, from, result, count);
    if (op != Op::no_op) wrote_to(target);
    return status;
  }

  // Threads that wait for different targets share the state of active_, so none waits inside.
  Status await_post(Home target) {
    if (!threads_) [[likely]]
      return active_.await_post(target);
    const auto posted = [&] {
      const Guard guard(*this);
      return active_.posted(target);
    };
    sync::Backoff<C> backoff(core_, {});
    while (!posted()) TOMBOLO_TRY(backoff.pause());
    return {};
  }

  void wrote_to(Home target) {
    if constexpr (!C::properties.coherent) {
      const Guard guard(*this);
      own_.note_put(target);
    }
  }

  // The promises speak of the own region; where the program stores into its peers' as well and
  // loads from them, nothing was promised about those.
  bool promises_no_store(Assertions promise) const {
    return promise.no_store && !program_reads_peers_;
  }
  bool promises_no_put(Assertions promise) const { return promise.no_put && !program_reads_peers_; }

  void exposure_ended() {
    if (post_no_put_)
      own_.check_no_put();
    else
      own_.refresh_all();  // the program may look at the puts (EN5)
    epochs_.unexpose();
  }

  // With threads the caller has the epoch state's guard.
  [[gnu::always_inline]] void complete_puts() {
    const Settle settle(core_);
    core_.drain();  // EN4
    // A later get of the same epoch must not overtake the puts (R3); where memory is not coherent,
    // its refresh does not.
    if constexpr (C::properties.coherent) core_.fence();
    own_.announce_puts(/*at_once=*/true);  // a later put may say that these are there
  }

  // With threads the caller has the epoch state's guard.
  void end_passive_epoch() {
    core_.drain();  // our puts are in memory before the lock can be taken by another (WD1)
    // A lock that needed no check is not freed, and the next one orders nothing either.
    own_.announce_puts(/*at_once=*/true);
    own_.publish_all();  // others may now get the program's stores into its own region (EN5)
  }

  template <std::size_t place = 0>
  void make_locks(sync::LockKind kind, const sync::LockOptions& options) {
    if constexpr (place == sync::WindowLockFamilies::size) {
      TOMBOLO_CHECK(false, "window: no lock family {}", static_cast<unsigned>(kind));
    } else {
      if (kind != sync::LockKind(place)) return make_locks<place + 1>(kind, options);
      locks_.template emplace<place + 1>(core_, std::get<place>(layouts_.locks), options);
      default_locks_ = std::get_if<1>(&locks_);
    }
  }

  // The default family in line, the others elsewhere: they would take more of the cache for code
  // than all else of a call.
  template <class Use>
  [[gnu::always_inline]] auto with_locks(Use use) {
    if (default_locks_ != nullptr) [[likely]]
      return use(*default_locks_);
    return with_other_locks<2>(use);
  }
  // The last two in one function, each before them in one of its own.
  template <std::size_t at, class Use>
  [[gnu::noinline]] auto with_other_locks(Use& use) {
    constexpr std::size_t last = std::variant_size_v<Locks> - 1;
    if constexpr (at == last) {
      return use(std::get<last>(locks_));
    } else {
      if (auto* const locks = std::get_if<at>(&locks_)) return use(*locks);
      if constexpr (at + 1 == last)
        return use(std::get<last>(locks_));
      else
        return with_other_locks<at + 1>(use);
    }
  }

  // The state that lock, unlock, put and get look at comes first, on few lines of the cache; the
  // other flags take no room there.
  const bool threads_;
  const bool memory_moves_on_;
  const bool program_reads_peers_;
  const bool all_mapped_;
  bool fence_no_put_ = false;
  bool post_no_put_ = false;
  DefaultLocks* default_locks_ = nullptr;  // in locks_, if they are of this family
  Epochs epochs_;
  C core_;
  Locks locks_;
  Layouts layouts_;
  sync::DisseminationBarrier<C> barrier_;
  sync::ActiveTarget<C> active_;
  OwnCopies<C> own_;
  AtomicUpdates<C> updates_;
  std::recursive_mutex mutex_;
};

}  // namespace tombolo::windows
