// SPDX-License-Identifier: Apache-2.0
#include "svp/channels/cell.h"

#include "base/check.h"
#include "svp/family/external_threads.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

void no_value(const char* message) {
  Worker* const worker = Worker::here();
  if (worker != nullptr && worker->scope() != nullptr && worker->scope()->stopped())
    throw Stopped{};
  ExternalThreads* const threads = worker == nullptr ? ExternalThreads::here() : nullptr;
  if (threads != nullptr && threads->stopped()) throw Stopped{};
  stop(__FILE__, __LINE__, "a value was written", message);
}

}  // namespace tombolo::svp
