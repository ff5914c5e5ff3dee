// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/call_service.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "host/processes/start_thread.h"

namespace tombolo::dsm {
namespace {

// A call that is never answered would let its caller wait for ever.
void start(std::function<void()> serve) {
  std::thread thread;
  const Status started =
      host::start_thread("for the system calls of another process", std::move(serve), thread);
  if (started.ok()) return thread.detach();
  const std::string text = "tombolo: " + started.message() + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(EXIT_FAILURE);
}

}  // namespace

void CallService::take(int from, std::span<const std::byte> request) {
  std::unique_ptr<Worker>& worker = workers_[from];
  if (worker == nullptr) {
    worker = std::make_unique<Worker>();
    // To the end of the process: it may sleep in a call then.
    start([this, from, &own = *worker] { serve(from, own); });
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
