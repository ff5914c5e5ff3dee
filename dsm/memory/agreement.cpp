// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/agreement.h"

#include <fmt/format.h>

namespace tombolo::dsm {

void tell_cause(std::string_view cause) {
  const std::string line = fmt::format("tombolo: {}\n", cause);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void Agreement::step(const Status& mine) const {
  if (job_ == nullptr ? !mine.ok() : !job_->all(mine.ok())) end(mine);
}

void Agreement::end(const Status& mine) const {
  const std::string cause = fmt::format("the program does not start: {}",
                                        mine.ok() ? "another process failed" : mine.message());
  if (job_ != nullptr) dsm::end_all(*job_, job_, !mine.ok(), cause);
  tell_cause(cause);
  _exit(EXIT_FAILURE);
}

void Agreement::take_from_first(std::string& text) const {
  if (job_ == nullptr) return;
  std::uint64_t bytes = text.size();
  take_from_first(bytes);
  text.resize(bytes);
  step(job_->broadcast(text.data(), bytes, 0));
}

}  // namespace tombolo::dsm
