// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/call_service.h"

#include <utility>

#include "host/processes/start_thread.h"

namespace tombolo::dsm {
void CallService::take(int from, std::span<const std::byte> request) {
  std::unique_ptr<Worker>& worker = workers_[from];
  if (worker == nullptr) {
    worker = std::make_unique<Worker>();
    // To the end of the process: it may sleep in a call then.
    host::start_thread_or_end("for the system calls of another process", [this, from,
                                                                          &own = *worker] {
      serve(from, own);
    }).detach();
  }
  const std::lock_guard lock(worker->mutex);
  worker->request.emplace(request.begin(), request.end());
  worker->wanted.notify_one();
}

void CallService::serve(int from, Worker& worker) {
  for (;;) {
    ForwardedCall::Bytes request;
    {
      std::unique_lock lock(worker.mutex);
      worker.wanted.wait(lock, [&] { return worker.request.has_value(); });
      request = *std::exchange(worker.request, std::nullopt);
    }
    answer_(from, ForwardedCall::execute(request));
  }
}

}  // namespace tombolo::dsm
