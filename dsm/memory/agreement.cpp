// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/agreement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "dsm/transport/mpi/end_together.h"

namespace tombolo::dsm {
namespace {

// Without stdio: the program has not begun.
void tell(const Status& why) {
  const std::string line = fmt::format("tombolo: the program does not start: {}\n", why.message());
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void Agreement::step(const Status& mine) const {
  if (job_ == nullptr ? mine.ok() : job_->all(mine.ok())) return;
  end_all(mine);
}

void Agreement::end_all(const Status& mine) const {
  if (job_ == nullptr) {
    tell(mine);
    _exit(EXIT_FAILURE);
  }
  const char knows = mine.ok() ? 0 : 1;
  std::vector<char> all(static_cast<std::size_t>(job_->size()), 0);
  const bool asked = job_->gather(&knows, all.data(), sizeof knows).ok();
  const auto first = std::ranges::find(all, 1) - all.begin();
  if (!mine.ok() && (!asked || first == job_->rank())) tell(mine);
  (void)job_->gather(&knows, all.data(), sizeof knows).ok();  // AGR2
  end_together(*job_);                                        // AGR3
}

void Agreement::take_from_first(std::string& text) const {
  if (job_ == nullptr) return;
  std::uint64_t bytes = text.size();
  take_from_first(bytes);
  text.resize(bytes);
  step(job_->broadcast(text.data(), bytes, 0));
}

}  // namespace tombolo::dsm
