// SPDX-License-Identifier: Apache-2.0
// Purpose: create() of families that may run in another process: their thread function is named by
// remote<>, and their arguments are described by the types of its parameters
// (svp/transport/description.h).
//
//   void scale(Index i, In<double> by, InArray<double> from, OutArray<double> to);
//   auto family = create(job.place(1), {.limit = n}, remote<&scale>, 2.0, from, to);
//   family.sync();
//
// At a place of this process the threads use the creator's variables and arrays themselves, without
// a copy; elsewhere those that DSC1 describes travel at the create and at the sync. In both cases
// the creator leaves them alone in between.
// Thread safety: as Family.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "svp/family/family_base.h"
#include "svp/family/threads.h"
#include "svp/places/place.h"
#include "svp/places/remote_place.h"
#include "svp/transport/function.h"

namespace tombolo::svp {

// The error of a family that failed in another process, or because that process has ended.
struct RemoteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class R, class Parameters>
class DistributedFamily;

template <auto f, class... P>
class [[nodiscard]] DistributedFamily<Remote<f>, std::tuple<P...>> final : public FamilyBase {
 public:
  // By create().
  template <class... Args>
  DistributedFamily(std::in_place_t, const Place& place, const Range& range, Args&&... args)
      : FamilyBase(&DistributedFamily::run_taken),
        parameters_(P(std::forward<Args>(args))...),
        at_(place),
        threads_(range, Body{&parameters_}) {
    Worker* const worker = Worker::here();
    if (worker != nullptr)
      set_parent(worker->scope());
    else
      count_outside();
    const RemoteRecord* const remote = place.is_default() ? nullptr : place.record().remote;
    if (remote != nullptr)
      open(*remote, range, worker);
    else
      at_.begin(*this, *this, &DistributedFamily::body, worker);
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
    if (worker != nullptr && worker->wanted() && worker->attend()) throw Stopped{};
    return end;
  }

 private:
  struct Body {
    std::tuple<P...>* parameters;
    void operator()(Index index) const {
      std::apply(
          [&](P&... parameter) {
            if constexpr (Remote<f>::takes_index)
              f(index, parameter...);
            else
              f(parameter...);
          },
          *parameters);
    }
  };

  static void body(Task& task, Worker& worker) {
    auto& self = static_cast<DistributedFamily&>(task);
    worker.set_scope(&self);
    self.threads_.run(self, worker);
  }
  static void run_taken(Task& task, Worker& worker) {
    static_cast<DistributedFamily&>(task).at_.run(task, &DistributedFamily::body, worker);
  }

  void open(const RemoteRecord& remote, const Range& range, Worker* worker) {
    creator = worker;
    call_.emplace(*this);
    const auto pieces = std::apply(
        [](P&... parameter) {
          return std::array<Piece, sizeof...(P)>{Parameter<P>::piece(parameter)...};
        },
        parameters_);
    const CallPlan plan{.function = &Remote<f>::entry(),
                        .range = range,
                        .place = remote.place,
                        .carriage = remote.carriage};
    Exchange::here()->open(*call_, remote, plan, pieces);
  }

  void complete(Worker* worker) {
    const bool parent_stopped = parent() != nullptr && parent()->stopped();
    if (call_) Exchange::here()->ask_sync(*call_, parent_stopped);
    if (worker == nullptr || call_ || !worker->take_back(*this)) return join(worker);
    Scope* const before = worker->scope();
    at_.run(*this, &DistributedFamily::body, *worker);
    worker->set_scope(before);
  }
  Exit exit_of_all() {
    Exit here = exit();
    if (!call_) return here;
    const Completion& there = call_->call->completion();
    Exit end{.reason = there.reason, .value = there.value};
    if (there.reason == ExitReason::failed)
      end.error = std::make_exception_ptr(RemoteError(there.text));
    return end;
  }
  // Leaves the creating thread if that was stopped.
  void attend(Worker& worker) {
    if (!worker.attend()) return;
    complete(syncing());
    (void)exit();
    throw Stopped{};
  }
  void leave() {
    leave_unsynced();
    complete(syncing());
    (void)exit();
  }

  std::tuple<P...> parameters_;
  AtPlace at_;
  DividedThreads<Body> threads_;
  std::optional<OpenCall> call_;  // of a family in another process
};

// A thread for each index of the range, at the place.
template <auto f, class... Args>
requires ArgumentsOf<Remote<f>, Args...>
auto create(const Place& place, const Range& range, const Remote<f>&, Args&&... args) {
  return DistributedFamily<Remote<f>, typename Remote<f>::Parameters>(std::in_place, place, range,
                                                                      std::forward<Args>(args)...);
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
