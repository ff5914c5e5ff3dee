// SPDX-License-Identifier: Apache-2.0
// Purpose: makes the forwarded calls of other processes (forwarded_call.h) in the first one: each
// process's by a thread of its own, which may sleep in the kernel.
// Thread safety: take() by one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "pthreads/hosts/forwarded_call.h"

namespace tombolo::dsm {

class CallService {
 public:
  // Called by the threads of the service. It outlives the process's other parts.
  using Answer = std::function<void(int to, const ForwardedCall::Bytes& answer)>;
  explicit CallService(Answer answer) : answer_(std::move(answer)) {}

  // A process has one call at a time. Returns at once.
  void take(int from, std::span<const std::byte> request);

 private:
  struct Worker {
    std::mutex mutex;
    std::condition_variable wanted;
    std::optional<ForwardedCall::Bytes> request;
  };
  void serve(int from, Worker& worker);

  Answer answer_;
  std::map<int, std::unique_ptr<Worker>> workers_;
};

}  // namespace tombolo::dsm
