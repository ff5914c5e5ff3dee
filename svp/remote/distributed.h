// SPDX-License-Identifier: Apache-2.0
// Purpose: create() of families that may run in another process: their thread function is named by
// remote<>, and their arguments are described by the types of its parameters
// (svp/remote/description.h).
//
//   void scale(Index i, In<double> by, InArray<double> from, OutArray<double> to);
//   auto family = create(job.place(1), {.limit = n}, remote<&scale>, 2.0, from, to);
//   family.sync();
//
// At a place of this process the threads use the creator's variables, arrays and channels
// themselves, without a copy; elsewhere those that DSC1 describes travel at the create and at the
// sync, and values of channels when they are written or wanted. In both cases the creator leaves
// the variables and arrays alone in between.
// Thread safety: as Family.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "svp/family/family.h"
#include "svp/places/place.h"
#include "svp/remote/channel_parameters.h"
#include "svp/remote/function.h"
#include "svp/remote/remote_place.h"

namespace tombolo::svp {

// The error of a family that failed in another process, or because that process has ended.
struct RemoteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class R, class Data, class Ends>
class DistributedFamily;

template <auto f, class... P, class... E>
class [[nodiscard]] DistributedFamily<Remote<f>, std::tuple<P...>, std::tuple<E...>> final
    : public FamilyBase {
 public:
  using Data = std::index_sequence_for<P...>;
  using Channels = std::index_sequence_for<E...>;

  // By create(). The arguments are a tuple of references.
  template <std::size_t... d, std::size_t... c, class Args>
  DistributedFamily(const Place& place, const Range& range, std::index_sequence<d...>,
                    std::index_sequence<c...>, Args&& args)
      : FamilyBase(&DistributedFamily::run_taken, Worker::here()),
        parameters_(P(std::get<d>(std::forward<Args>(args)))...),
        at_(place),
        threads_(range, Body{&parameters_}, std::get<sizeof...(P) + c>(args)...),
        parents_(std::get<sizeof...(P) + c>(args)...) {
    Worker* const worker = creator;
    const RemoteRecord* const remote = place.is_default() ? nullptr : place.record().remote;
    if (remote != nullptr)
      open(*remote, range);
    else
      at_.begin(*this, *this, worker);
    if (worker == nullptr) count_outside();
    threads_.hand_over_channels();
    if (worker != nullptr && worker->wanted()) attend(*worker);
  }
  ~DistributedFamily() {
    if (!synced()) [[unlikely]]
      leave();
  }

  // As Family::sync(). Output has come when it returns; of a family that was killed or has failed
  // there is none.
  Exit sync() {
    Worker* const worker = syncing();
    complete(worker);
    Exit end = exit_of_all();
    if (!end.done() && parent() != nullptr && parent()->stopped()) throw Stopped{};
    if (worker != nullptr && worker->wanted()) sync_attentively(*worker);
    return end;
  }

 private:
  template <class End>
  using ChannelOf = typename ChannelParameter<End>::Channel;
  template <class End>
  using ParentOf = typename ChannelParameter<End>::Parent;

  struct Body {
    std::tuple<P...>* parameters;
    void operator()(Index index, E... ends) const {
      std::apply(
          [&](P&... parameter) {
            if constexpr (Remote<f>::takes_index)
              f(index, parameter..., ends...);
            else
              f(parameter..., ends...);
          },
          *parameters);
    }
  };
  using Threads = detail::RangeThreads<Body, ChannelOf<E>...>;

  static void body(Task& task, Worker& worker) {
    auto& self = static_cast<DistributedFamily&>(task);
    worker.set_scope(&self);
    if (worker.wanted()) self.begin_attentively(worker);
    self.threads_.run(self, worker);
  }
  static void run_taken(Task& task, Worker& worker) {
    static_cast<DistributedFamily&>(task).at_.run(task, &DistributedFamily::body, worker);
  }

  void open(const RemoteRecord& remote, const Range& range) {
    call_.emplace(*this, ends_);
    const auto pieces = std::apply(
        [](P&... parameter) {
          return std::array<Piece, sizeof...(P)>{Parameter<P>::piece(parameter)...};
        },
        parameters_);
    const CallPlan plan{.function = &Remote<f>::entry(),
                        .range = range,
                        .place = remote.place,
                        .transport = remote.transport};
    Exchange::here()->open(*call_, remote, plan, pieces);
    if constexpr (sizeof...(E) != 0) listen();
  }
  void listen() {
    for (ParentEnd* const end : ends_)
      TOMBOLO_CHECK(end->listen(*call_), "create: a channel that belongs to another family");
    call_->channel_changed();  // it may have been, before
  }
  // No thread of this process tells of them any more.
  void ignore() {
    for (ParentEnd* const end : ends_) end->ignore();
    Exchange::here()->forget(*call_);
  }

  void complete(Worker* worker) {
    const bool parent_stopped = parent() != nullptr && parent()->stopped();
    threads_.close_parent();
    if (call_) Exchange::here()->ask_sync(*call_, parent_stopped);
    if (worker == nullptr || call_ || !worker->take_back(*this)) return join_at(at_, worker);
    worker->counts().inlined.add();
    Scope* const before = worker->scope();
    at_.run_own(*this, &DistributedFamily::body, *worker);
    worker->set_scope(before);
  }
  Exit exit_of_all() {
    Exit here = exit_here();
    if (!call_) return here;
    const Completion& there = call_->call->completion();
    Exit end{.reason = there.reason, .value = there.value};
    if (there.reason == ExitReason::failed)
      end.error = std::make_exception_ptr(RemoteError(there.text));
    return end;
  }
  Exit exit_here() {
    if constexpr (sizeof...(E) != 0)
      if (call_) ignore();
    return exit();
  }
  void begin_attentively(Worker& worker) {
    worker.note_begin(FamilyTrace::Event::family, *this,
                      {.range = threads_.range(),
                       .place = at_.name(worker),
                       .family = static_cast<const Scope*>(this),
                       .parent = parent()});
    if (worker.attend()) end_early();
  }
  // Leaves the creating thread if that was stopped.
  void attend(Worker& worker) {
    if (!worker.attend()) return;
    end_unsynced();
    throw Stopped{};
  }
  void leave() {
    leave_unsynced();
    end_unsynced();
  }
  void end_unsynced() {
    Worker* const worker = syncing();
    complete(worker);
    (void)exit_here();
    if (worker != nullptr) worker->note_end(*this);
  }

  std::tuple<P...> parameters_;
  AtPlace at_;
  Threads threads_;
  std::tuple<ParentOf<E>...> parents_;
  std::array<ParentEnd*, sizeof...(E)> ends_ = std::apply(
      [](auto&... end) { return std::array<ParentEnd*, sizeof...(E)>{&end...}; }, parents_);
  std::optional<OpenCall> call_;  // of a family in another process
};

// A thread for each index of the range, at the place.
template <auto f, class... Args>
requires ArgumentsOf<Remote<f>, Args...>
auto create(const Place& place, const Range& range, const Remote<f>&, Args&&... args) {
  using Created =
      DistributedFamily<Remote<f>, typename Remote<f>::Data, typename Remote<f>::ChannelEnds>;
  return Created(place, range, typename Created::Data(), typename Created::Channels(),
                 std::forward_as_tuple(std::forward<Args>(args)...));
}
// One thread.
template <auto f, class... Args>
requires ArgumentsOf<Remote<f>, Args...>
auto create(const Place& place, const Remote<f>& function, Args&&... args) {
  return create(place, Range{}, function, std::forward<Args>(args)...);
}
// At the default place.
template <auto f, class... Args>
requires ArgumentsOf<Remote<f>, Args...>
auto create(const Range& range, const Remote<f>& function, Args&&... args) {
  return create(Place(), range, function, std::forward<Args>(args)...);
}

}  // namespace tombolo::svp
