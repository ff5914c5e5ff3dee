// SPDX-License-Identifier: Apache-2.0
#include "svp/channels/cell.h"

#include "base/check.h"
#include "svp/family/surroundings.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

void no_value(const char* message) {
  Worker* const worker = Worker::here();
  if (worker != nullptr && worker->scope() != nullptr && worker->scope()->stopped())
    throw Stopped{};
  Surroundings* const surroundings = worker == nullptr ? Surroundings::here() : nullptr;
  if (surroundings != nullptr && surroundings->stopped()) throw Stopped{};
  stop(__FILE__, __LINE__, "a value was written", message);
}

}  // namespace tombolo::svp
