// SPDX-License-Identifier: Apache-2.0
#include "dsm/testing/faulty.h"
#include "litmus/programs/buffered.h"
#include "litmus/programs/late.h"
#include "litmus/programs/memory_bodies.h"
#include "litmus/programs/notices_program.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/registry.h"

namespace tombolo::litmus {
namespace {

using dsm::Regional;
using dsm::Release;
using dsm::Sequential;
using Usual = ThreadOn<Explored, Regional>;
using InOrder = ThreadOn<Explored, Sequential>;
using InPlace = ThreadInPlace<Buffered<Explored>>;
using Telling = ThreadOn<Explored, Release>;
using TellingInPlace = ThreadInPlace<Buffered<Explored>, Release>;

// The page store and the transport, each without one operation.
template <Omit What>
using Machine = ThreadOn<Omitting<Explored, What>, Regional>;
using dsm::testing::FaultyPages;
using dsm::testing::FaultyTransport;
using MemoryOmit = dsm::testing::Omit;
template <MemoryOmit What, template <class, class> class Protocol = Regional>
using Faulty = dsm::testing::ProgramThread<FaultyTransport<ExploredTransport<Explored>, What>,
                                           FaultyPages<What>, Protocol>;

// Brings the pages of an instruction one by one.
template <dsm::Transport T, dsm::PageStore S>
class Apart : public Sequential<T, S> {
 public:
  using Sequential<T, S>::Sequential;
  Status bring_together(std::span<const dsm::Access> accesses) {
    for (const dsm::Access& access : accesses) TOMBOLO_TRY(this->write_miss(access.page));
    return {};
  }
};

// Meets others without a word about its stores, or without a look at theirs.
template <dsm::Transport T, dsm::PageStore S>
class Mute : public Regional<T, S> {
 public:
  using Regional<T, S>::Regional;
  Status tell() { return {}; }
};
template <dsm::Transport T, dsm::PageStore S>
class Deaf : public Regional<T, S> {
 public:
  using Regional<T, S>::Regional;
  Status learn() { return {}; }
};

// Hands a lock over with its stores still unsent.
template <dsm::Transport T, dsm::PageStore S>
class Hasty : public Release<T, S> {
 public:
  using Release<T, S>::Release;
  Status try_hand_over(dsm::Lock /*lock*/, bool& done) {
    done = true;
    return {};
  }
};

// A thread of a sequential program answers others wherever it waits: many schedules, each longer.
constexpr Bounds in_order{.evictions = 0, .preemptions = 2};
constexpr Bounds three_threads{.evictions = 0};
constexpr Bounds interrupted_once{.evictions = 0, .preemptions = 1};
constexpr Bounds no_evictions{.evictions = 0};  // of lines

// The third page is brought when the second one is stored to after the first.
constexpr Shape in_order_pages{.threads = 2,
                               .pages = 3,
                               .page_bytes = line_bytes,
                               .cached_pages = 4,
                               .locks = 2,
                               .notices = 4,
                               .updates = 2,
                               .read_ahead = 1};

// The ring of protocol `release` holds one notice: the first of two is lost to a thread that comes
// late.
constexpr Shape with_one_notice(Shape shape) {
  shape.notices = 1;
  return shape;
}
constexpr Shape telling_all = with_one_notice(two_pages);
constexpr Shape with_three_locks(Shape shape) {
  shape.locks = 3;
  shape.notices = 4;
  return shape;
}
constexpr Shape telling_all_of_three_locks = with_three_locks(telling_all);

template <class Thread>
ExploredProgram program(const std::string& name, const std::string& about, const Shape& shape,
                        std::type_identity_t<typename MemoryProgram<Thread>::Body> body,
                        const Bounds& bounds = {}, machine::Home cores = 2,
                        typename MemoryProgram<Thread>::Forbidden forbidden = nullptr) {
  return {.name = "memory/" + name,
          .about = about,
          .bounds = bounds,
          .cores = cores,
          .make = [=](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<MemoryProgram<Thread>>(n, shape, body, forbidden);
          }};
}

template <class Thread>
ExploredProgram twin(const std::string& name, const std::string& about,
                     std::type_identity_t<typename MemoryProgram<Thread>::Body> body,
                     const Bounds& bounds = {}, machine::Home cores = 2,
                     const Shape& shape = two_pages) {
  ExploredProgram made = program<Thread>(name, about, shape, std::move(body), bounds, cores);
  made.name = "broken/" + made.name;
  made.broken = true;
  return made;
}

// Both loads saw no store.
bool neither_is_seen(const std::vector<std::vector<std::uint64_t>>& seen) {
  return !seen[0].empty() && !seen[1].empty() && seen[0][0] == 0 && seen[1][0] == 0;
}

template <class Thread>
void recorded_twice(MemoryThread<Thread>& t) {
  counted_under_a_lock(t, 2, true);
}
template <class Thread>
void recorded_once(MemoryThread<Thread>& t) {
  counted_under_a_lock(t, 1, true);
}
template <class Thread>
void by_pages_twice(MemoryThread<Thread>& t) {
  counted_under_a_lock(t, 2, false);
}
template <class Thread>
void counted_in_order(MemoryThread<Thread>& t) {
  counted_under_a_lock(t, 1, true);
  t.memory().close();
}
template <class Thread>
void recorded_then_barrier(MemoryThread<Thread>& t) {
  span_then_barrier(t, true);
}
template <class Thread>
void by_pages_then_barrier(MemoryThread<Thread>& t) {
  span_then_barrier(t, false);
}

}  // namespace

std::vector<ExploredProgram> memory_programs() {
  using U = Usual;
  using R = Telling;
  using RInPlace = TellingInPlace;
  const Shape small = with_one_place(two_pages);
  const std::string evictions = "the same in a cache for one page";
  return {
      program<U>("spans", "a number under a lock, recorded", two_pages, recorded_twice<U>),
      program<U>("spans-by-pages", "the same, not recorded", two_pages, by_pages_twice<U>),
      program<U>("spans-on-two-pages", "two pages under a lock", two_pages,
                 two_pages_under_a_lock<U>),
      program<U>("spans-with-evictions", evictions, small, two_pages_under_a_lock<U>),
      program<U>("spans-of-three", "a number under a lock, by three threads", two_pages,
                 recorded_once<U>, three_threads, 3),
      program<U>("before-a-span", "a store before a span", two_pages, stored_before_a_span<U>),
      program<U>("before-a-span-with-evictions", evictions, small, stored_before_a_span<U>),
      program<U>("before-two-spans", "a page that is stored to again once it is home", two_pages,
                 stored_before_two_spans<U>),
      program<U>("before-another-lock", "a store before a span of another lock", two_pages,
                 stored_before_another_lock<U>),
      program<U>("changed-by-several", "a page that both change before a barrier", two_pages,
                 changed_by_several<U>),
      program<U>("met-by-two", "a barrier of two threads", two_pages, met_by_two<U>, no_evictions),
      program<U>("kept-and-met", "a kept page, and a barrier of two threads", two_pages,
                 kept_and_met<U>),
      program<U>("kept-by-one", "a page that one thread changes, and another reads", two_pages,
                 kept_by_one<U>),
      program<U>("kept-by-one-of-three", "the same with two readers", two_pages, kept_by_one<U>,
                 three_threads, 3),
      program<U>("kept-and-changed", "a kept page that another changes too", two_pages,
                 kept_and_changed<U>),
      program<U>("kept-and-changed-of-three", "the same beside a third thread", two_pages,
                 kept_and_changed<U>, three_threads, 3),
      program<U>("kept-and-sent", "a kept page that goes home before a span", two_pages,
                 kept_and_sent<U>),
      program<U>("kept-before-another-lock", "the same, and a span of another lock", two_pages,
                 kept_before_another_lock<U>),
      program<U>("kept-and-evicted", evictions, small, kept_and_sent<U>),
      program<InPlace>("in-place/kept-by-one", "a page that is left to its writer", two_pages,
                       kept_by_one<InPlace>),
      program<InPlace>("in-place/kept-by-one-of-three", "the same with two readers", two_pages,
                       kept_by_one<InPlace>, three_threads, 3),
      program<InPlace>("in-place/kept-and-met", "the same, and a barrier of two threads", two_pages,
                       kept_and_met<InPlace>),
      program<InPlace>("in-place/kept-and-changed", "the same, and another changes it too",
                       two_pages, kept_and_changed<InPlace>, no_evictions),
      program<InPlace>("in-place/kept-and-changed-of-three", "the same beside a third thread",
                       two_pages, kept_and_changed<InPlace>, three_threads, 3),
      program<InPlace>("in-place/kept-and-sent", "a page that is left, and read before a span",
                       two_pages, kept_and_sent<InPlace>),
      program<InPlace>("in-place/kept-before-another-lock", "the same, and a span of another lock",
                       two_pages, kept_before_another_lock<InPlace>),
      program<InPlace>("in-place/kept-and-evicted", evictions, small, kept_and_sent<InPlace>,
                       no_evictions),
      program<InPlace>("in-place/kept-and-taken-over",
                       "a page that is left, then changed by another", two_pages,
                       kept_and_taken_over<InPlace>, no_evictions),
      program<InPlace>("in-place/stored-in-a-span", "a page that is left, changed in a span",
                       two_pages, kept_and_stored_in_a_span<InPlace>, no_evictions),
      program<InPlace>("in-place/stored-in-order", "a page that is kept before it is stored to",
                       in_order_pages, stored_in_order<InPlace>, in_order),
      program<InPlace>("in-place/stored-in-order-before-a-span", "the same before spans of both",
                       in_order_pages, stored_in_order_before_a_span<InPlace>, in_order),
      program<InPlace>("in-place/given-back", "a page that is left, and goes home", two_pages,
                       kept_and_given_back<InPlace>),
      program<InPlace>("in-place/kept-by-its-stores", "a page that one thread changes twice",
                       two_pages, kept_by_its_stores<InPlace>, no_evictions),
      program<InPlace>("in-place/kept-by-stores-of-two", "the same by two threads", two_pages,
                       kept_by_stores_of_two<InPlace>, interrupted_once),
      program<InPlace>("in-place/kept-once-cleared", "a page that one clears, and another keeps",
                       two_pages, kept_once_cleared<InPlace>, interrupted_once),
      program<InPlace>("in-place/kept-once-cleared-and-got", "the same beside a reader", two_pages,
                       kept_once_cleared_and_got<InPlace>, interrupted_once, 3),
      program<InPlace>("in-place/kept-by-stores-and-got", "the same beside a reader", two_pages,
                       kept_by_stores_and_got<InPlace>, interrupted_once, 3),
      program<U>("kept-and-given-back", "a kept page that goes home", two_pages,
                 kept_and_given_back<U>),
      program<U>("kept-and-taken-over", "a kept page that another changes alone", two_pages,
                 kept_and_taken_over<U>),
      program<U>("kept-and-stored-in-a-span", "a kept page, changed in a span", two_pages,
                 kept_and_stored_in_a_span<U>),
      program<U>("span-then-barrier", "a span's store after a barrier", two_pages,
                 recorded_then_barrier<U>),
      program<U>("span-by-pages-then-barrier", "the same, not recorded", two_pages,
                 by_pages_then_barrier<U>),
      program<U>("nested-spans", "stores in spans of two locks", two_pages, nested_spans<U>),
      program<U>("reductions", "two sums", two_pages, reduced<U>),
      {.name = "memory/write-notices",
       .about = "two append to a ring for one notice, the third reads",
       .bounds = three_threads,
       .cores = 3,
       .make = [](machine::Home n) -> std::unique_ptr<Program> {
         return std::make_unique<NoticesProgram<Explored>>(n, false);
       }},
      {.name = "memory/changes-in-notices",
       .about = "the same, of notices with the changes themselves",
       .bounds = three_threads,
       .cores = 3,
       .make = [](machine::Home n) -> std::unique_ptr<Program> {
         return std::make_unique<NoticesProgram<Explored>>(n, true);
       }},
      program<R>("told-to-all", "spans of two locks that tell all of their stores to one page",
                 telling_all, told_to_all<R>, no_evictions),
      program<R>("told-in-inner-spans", "a number of an outer span, changed between inner ones",
                 telling_all_of_three_locks, told_in_inner_spans<R>, interrupted_once),
      program<R>("told-with-a-lock", "stores of two to one page, with a lock that is handed over",
                 telling_all, handed_over<R>, interrupted_once),
      program<RInPlace>("in-place/told-with-a-lock", "the same where pages may be kept",
                        telling_all, handed_over<RInPlace>, interrupted_once),
      program<R>("told-outside-of-spans", "stores of two to one page, told twice", telling_all,
                 kept_by_stores_of_two<R>, interrupted_once),
      program<RInPlace>("in-place/told-outside-of-spans", "the same where pages may be kept",
                        telling_all, kept_by_stores_of_two<RInPlace>, interrupted_once),
      program<RInPlace>("in-place/told-and-kept", "a page that one thread keeps, and tells all of",
                        telling_all, kept_by_its_stores<RInPlace>, no_evictions),
      program<RInPlace>("in-place/told-once-cleared",
                        "a page that one clears, and another keeps, and tells all of", telling_all,
                        kept_once_cleared<RInPlace>, interrupted_once),
      program<RInPlace>("in-place/told-once-cleared-and-got", "the same beside a reader",
                        telling_all, kept_once_cleared_and_got<RInPlace>, interrupted_once, 3),
      program<InOrder>("sequential/store-buffering", "each stores to one page, loads the other",
                       two_pages, store_buffering<InOrder>, in_order, 2, neither_is_seen),
      program<InOrder>("sequential/message-passing", "a flag and a datum on two pages", two_pages,
                       message_passing<InOrder>, in_order),
      program<InOrder>("sequential/message-passing-with-evictions", evictions, small,
                       message_passing<InOrder>, in_order),
      program<InOrder>("sequential/written-after-a-read", "a writer whose page another has read",
                       two_pages, written_after_a_read<InOrder>, in_order),
      program<InOrder>("sequential/both-pages", "each stores to both pages by one instruction",
                       two_pages, stored_to_both<InOrder>, in_order),
      program<InOrder>("sequential/both-pages-and-each", "one does, beside stores to each of them",
                       two_pages, stored_to_both_and_each<InOrder>, in_order),
      program<InOrder>("sequential/spans", "a number under a lock", two_pages,
                       counted_in_order<InOrder>, in_order),
  };
}

std::vector<ExploredProgram> broken_memory_programs() {
  using NoPublish = Machine<Omit::publish>;
  using NoRefresh = Machine<Omit::refresh>;
  using NoComplete = Faulty<MemoryOmit::complete>;
  using NoDifference = Faulty<MemoryOmit::accumulate>;
  using NoPut = Faulty<MemoryOmit::put>;
  using NoExposed = Faulty<MemoryOmit::expose>;
  using NoUpdate = Faulty<MemoryOmit::update>;
  using NoInvalidation = Faulty<MemoryOmit::invalidate>;
  using NoTwin = Faulty<MemoryOmit::twin>;
  using NoProtection = Faulty<MemoryOmit::protection>;
  using NoFence = ThreadInPlace<Omitting<Buffered<Explored>, Omit::fence>>;
  using StayingInPlace = FaultyPages<MemoryOmit::invalidate, dsm::testing::ExposedPages>;
  using NotDroppedInPlace =
      dsm::testing::ProgramThread<ExploredTransport<Buffered<Explored>>, StayingInPlace, Regional>;
  using ToldNotDroppedInPlace =
      dsm::testing::ProgramThread<ExploredTransport<Buffered<Explored>>, StayingInPlace, Release>;
  using ToldNotDropped = Faulty<MemoryOmit::invalidate, Release>;
  using ToldNoTwin = Faulty<MemoryOmit::twin, Release>;
  using LateOnes = ThreadOn<Late<Explored>, Regional>;
  using NoAnswer = ThreadOn<Omitting<Explored, Omit::publish>, Sequential>;
  using OldCopy = ThreadOn<Omitting<Explored, Omit::refresh>, Sequential>;
  using NotHome = Faulty<MemoryOmit::complete, Sequential>;
  using OneByOne = ThreadOn<Explored, Apart>;
  using NotDropped = Faulty<MemoryOmit::protection, Sequential>;
  using Untold = ThreadOn<Explored, Mute>;
  using Unheard = ThreadOn<Explored, Deaf>;
  using Silent = ThreadOn<Explored, Hasty>;
  const std::string publish = "the transport does not publish";
  const std::string refresh = "the transport does not refresh";
  const std::string complete = "nothing is completed";
  const std::string late = "words are stored before what they tell of is in memory";
  const std::string twin_gone = "a page that is changed has no twin";
  const std::string old = "pages that are too old stay";
  return {
      twin<NoPublish>("spans/no-publish", publish, recorded_twice<NoPublish>),
      twin<NoRefresh>("spans/no-refresh", refresh, recorded_twice<NoRefresh>),
      twin<LateOnes>("kept-and-given-back/late", late, kept_and_given_back<LateOnes>),
      twin<NoComplete>("spans/no-complete", complete, recorded_twice<NoComplete>),
      twin<NoUpdate>("spans/no-update", "nothing travels with the lock", recorded_twice<NoUpdate>),
      twin<NoTwin>("spans/no-twin", twin_gone, recorded_twice<NoTwin>),
      twin<NoProtection>("before-two-spans/no-protection", "a page that is home stays writable",
                         stored_before_two_spans<NoProtection>),
      twin<NoInvalidation>("spans-by-pages/no-invalidation", old, by_pages_twice<NoInvalidation>),
      twin<NoDifference>("spans-by-pages/no-difference", "no difference is sent",
                         by_pages_twice<NoDifference>),
      twin<NoInvalidation>("before-another-lock/no-invalidation", old,
                           stored_before_another_lock<NoInvalidation>),
      twin<NoDifference>("before-another-lock/no-difference", "no difference is sent",
                         stored_before_another_lock<NoDifference>),
      twin<NoPublish>("changed-by-several/no-publish", publish, changed_by_several<NoPublish>),
      twin<NoRefresh>("changed-by-several/no-refresh", refresh, changed_by_several<NoRefresh>),
      twin<NoTwin>("before-a-span/no-twin", twin_gone, stored_before_a_span<NoTwin>),
      twin<Untold>("met-by-two/untold", "no stores are told before two threads meet",
                   met_by_two<Untold>, no_evictions),
      twin<Unheard>("met-by-two/unheard", "nothing is learned after two threads have met",
                    met_by_two<Unheard>, no_evictions),
      twin<NoPublish>("kept-by-one/no-publish", publish, kept_by_one<NoPublish>),
      twin<NoRefresh>("kept-by-one/no-refresh", refresh, kept_by_one<NoRefresh>),
      twin<NoComplete>("kept-by-one/no-complete", complete, kept_by_one<NoComplete>),
      twin<NoExposed>("kept-by-one/no-exposed-page", "a kept page is not exposed",
                      kept_by_one<NoExposed>),
      twin<NoPut>("kept-and-given-back/no-put", "a kept page is not put home",
                  kept_and_given_back<NoPut>),
      twin<NotDroppedInPlace>("in-place/kept-by-one/no-invalidation", old,
                              kept_by_one<NotDroppedInPlace>),
      twin<NoFence>("in-place/kept-before-another-lock/no-fence",
                    "readers are looked for before the stores are in memory",
                    kept_before_another_lock<NoFence>),
      twin<NotDroppedInPlace>("in-place/kept-by-its-stores/no-invalidation", old,
                              kept_by_its_stores<NotDroppedInPlace>, no_evictions),
      twin<NoFence>("in-place/kept-by-its-stores/no-fence",
                    "readers are looked for before the stores are in memory",
                    kept_by_its_stores<NoFence>, no_evictions),
      twin<NotDroppedInPlace>("in-place/kept-once-cleared-and-got/no-invalidation", old,
                              kept_once_cleared_and_got<NotDroppedInPlace>, interrupted_once, 3),
      twin<NoFence>("in-place/kept-once-cleared-and-got/no-fence",
                    "readers are looked for before the stores are in memory",
                    kept_once_cleared_and_got<NoFence>, interrupted_once, 3),
      twin<ToldNotDroppedInPlace>("in-place/told-once-cleared-and-got/no-invalidation", old,
                                  kept_once_cleared_and_got<ToldNotDroppedInPlace>,
                                  interrupted_once, 3, telling_all),
      twin<NoFence>("in-place/given-back/no-fence", "likewise, of a page that goes home",
                    kept_and_given_back<NoFence>),
      twin<ToldNotDropped>("told-to-all/no-invalidation", old, told_to_all<ToldNotDropped>,
                           no_evictions, 2, telling_all),
      twin<ToldNoTwin>("told-in-inner-spans/no-twin", twin_gone, told_in_inner_spans<ToldNoTwin>,
                       interrupted_once, 2, telling_all_of_three_locks),
      twin<Silent>("told-with-a-lock/untold", "no stores are sent before a lock is handed over",
                   handed_over<Silent>, interrupted_once, 2, telling_all),
      twin<ToldNoTwin>("told-with-a-lock/no-twin", twin_gone, handed_over<ToldNoTwin>,
                       interrupted_once, 2, telling_all),
      twin<ToldNotDropped>("told-outside-of-spans/no-invalidation", old,
                           kept_by_stores_of_two<ToldNotDropped>, no_evictions, 2, telling_all),
      twin<ToldNoTwin>("told-outside-of-spans/no-twin", twin_gone,
                       kept_by_stores_of_two<ToldNoTwin>, no_evictions, 2, telling_all),
      twin<NoInvalidation>("span-then-barrier/no-invalidation", old,
                           recorded_then_barrier<NoInvalidation>),
      twin<NoAnswer>("sequential/written-after-a-read/no-publish", publish,
                     written_after_a_read<NoAnswer>, in_order),
      twin<OldCopy>("sequential/message-passing/no-refresh", refresh, message_passing<OldCopy>,
                    in_order),
      twin<NotHome>("sequential/written-after-a-read/no-complete", complete,
                    written_after_a_read<NotHome>, in_order),
      twin<OneByOne>("sequential/both-pages/one-by-one", "nothing is kept meanwhile",
                     stored_to_both<OneByOne>, in_order),
      twin<NotDropped>("sequential/written-after-a-read/no-protection",
                       "a writer that others read stays one", written_after_a_read<NotDropped>,
                       in_order),
  };
}

}  // namespace tombolo::litmus
