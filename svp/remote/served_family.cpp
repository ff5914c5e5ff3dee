// SPDX-License-Identifier: Apache-2.0
#include "svp/remote/served_family.h"

#include <stdexcept>

namespace tombolo::svp {
namespace {

std::string text_of(const std::exception_ptr& error) try {
  std::rethrow_exception(error);
} catch (const std::exception& thrown) {
  return thrown.what();
} catch (...) {
  return "an exception that is no std::exception";
}

// Of an exit, for its creator.
std::int64_t value_of(const Exit& end) try {
  end.rethrow();
  return end.value;
} catch (const NumberedFailure& failure) {
  return failure.value;
} catch (...) {
  return 0;
}

}  // namespace

void ServedFamily::start(const Place& place) {
  slot = Task::reports;
  ended = &ServedFamily::report;
  at_.emplace(place);
  channels_.ends = service.channels();
  for (FamilyEnd* const end : channels_.ends) end->listen(*this);
  if (service.is_ordered())
    threads_in_order_.emplace(service.range(), Body{this}, channels_);
  else
    threads_.emplace(service.range(), Body{this});
  at_->begin(*this, *this, nullptr);
}

void ServedFamily::body(Task& task, Worker& worker) {
  auto& self = static_cast<ServedFamily&>(task);
  worker.set_scope(&self);
  worker.note_begin(FamilyTrace::Event::family, self,
                    {.range = self.service.range(),
                     .place = self.at_->name(worker),
                     .family = static_cast<const Scope*>(&self)});
  const Status there = self.host_.fetch(self.service);
  if (there.ok())
    self.run_threads(worker);
  else
    self.fail(std::make_exception_ptr(std::runtime_error(there.message())), true);
}

void ServedFamily::run_threads(Worker& worker) {
  if (threads_in_order_)
    threads_in_order_->run(*this, worker);
  else
    threads_->run(*this, worker);
}

void ServedFamily::run_taken(Task& task, Worker& worker) {
  static_cast<ServedFamily&>(task).at_->run(task, &ServedFamily::body, worker);
}

void ServedFamily::report(Task& task) {
  auto& self = static_cast<ServedFamily&>(task);
  self.host_.ended(self);
}

Completion ServedFamily::completion() {
  const Exit end = exit();
  return {.reason = end.reason,
          .value = value_of(end),
          .text = end.error == nullptr ? std::string() : text_of(end.error)};
}

}  // namespace tombolo::svp
