// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/program_state.h"

#include <unistd.h>

#include <clocale>
#include <cstring>
#include <string_view>

#include "dsm/memory/off_stack_memory.h"

namespace tombolo::dsm {
namespace {

// Those of the runtime, and those that the C library keeps for itself.
bool is_the_programs(int signal) {
  for (const int other : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGSYS, SIGRTMAX})
    if (signal == other) return false;
  return signal < __SIGRTMIN || signal >= SIGRTMIN;
}

}  // namespace

ProgramState::ProgramState() : environment_(environ), modules_(attached_modules()) {
  if (const char* const locale = std::setlocale(LC_ALL, nullptr); locale != nullptr)
    std::string_view(locale).copy(locale_.data(), locale_.size() - 1);
  for (int signal = 1; signal < signals; ++signal)
    if (is_the_programs(signal)) sigaction(signal, nullptr, &actions_[signal]);
}

void ProgramState::adopt() const {
  environ = environment_;
  attach_all(modules_);
  const char* const now = std::setlocale(LC_ALL, nullptr);
  if (now == nullptr || std::strcmp(now, locale_.data()) != 0)
    std::setlocale(LC_ALL, locale_.data());
  for (int signal = 1; signal < signals; ++signal) {
    if (!is_the_programs(signal)) continue;
    // A copy: the kernel reads it.
    const struct sigaction action = actions_[signal];
    sigaction(signal, &action, nullptr);
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
      runtime_hooks.has_signal_handlers = true;
  }
}

}  // namespace tombolo::dsm
