// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of Pthreads that start, end and name threads. Attributes of threads are the C
// library's: plain values in the program's memory.
#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "dsm/threads/runtime_hooks.h"
#include "host/interrupts/wake_up.h"
#include "pthreads/calls/calls.h"
#include "pthreads/program/carried_signals.h"

using tombolo::dsm::Deadline;
using tombolo::dsm::end_if_cancelled;
using tombolo::dsm::flush_output;
using tombolo::dsm::is_withheld;
using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads;
using tombolo::dsm::refuse;
using tombolo::dsm::signals_are_served;
using tombolo::dsm::Task;
using tombolo::dsm::ThreadedProgram;
using tombolo::dsm::ThreadHandle;
using tombolo::dsm::ThreadTable;

namespace {

Task task_of(const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  Task task{.function = function, .argument = argument};
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::memcpy(&task.signal_mask, &mask, sizeof task.signal_mask);
  if (attributes == nullptr) return task;
  int detached = 0;
  pthread_attr_getdetachstate(attributes, &detached);
  task.detached = detached == PTHREAD_CREATE_DETACHED;
  void* stack = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(attributes, &stack, &bytes);
  // Without pthread_attr_setstack() the C library names an address that is no one's.
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program->owns(stack)) task.stack = static_cast<std::byte*>(stack);
  pthread_attr_getstacksize(attributes, &bytes);
  task.stack_bytes = bytes;
  return task;
}

// This thread's name in the C library, which its other calls want; false for another thread's.
bool is_own(pthread_t thread, pthread_t& in_the_host) {
  Pthreads* const own = pthreads();
  if (own != nullptr && thread != own->program.self()) return false;
  in_the_host = TOMBOLO_HOST(pthread_self)();
  return true;
}

int refuse_of_others(const char* call) {
  return refuse(call, "it is there for the calling thread alone");
}

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                        void* (*function)(void*), void* argument) noexcept {
  Pthreads* const own = pthreads();
  if (own == nullptr && ThreadedProgram::is_of_the_runtime())
    return TOMBOLO_HOST(pthread_create)(thread, attributes, function, argument);
  if (own == nullptr) {
    refuse("pthread_create", "a library calls it before main");
    return EAGAIN;
  }
  flush_output();
  ThreadHandle made = 0;
  const int error = own->program.create(task_of(attributes, function, argument), made);
  if (error == 0) *thread = made;
  return error;
}

TOMBOLO_PTHREAD_CALL int pthread_join(pthread_t thread, void** value) {
  Pthreads* const own = pthreads();
  if (own == nullptr)
    return ThreadedProgram::is_of_the_runtime() ? TOMBOLO_HOST(pthread_join)(thread, value) : ESRCH;
  flush_output();
  end_if_cancelled();
  std::uint64_t result = 0;
  const int error = own->program.threads().join(own->program.self(), thread, result);
  if (error == 0 && value != nullptr) *value = reinterpret_cast<void*>(result);
  return error;
}

TOMBOLO_PTHREAD_CALL int pthread_tryjoin_np(pthread_t thread, void** value) noexcept {
  Pthreads* const own = pthreads();
  if (own == nullptr) return ESRCH;
  std::uint64_t result = 0;
  const int error = own->program.threads().try_join(own->program.self(), thread, result);
  if (error == 0 && value != nullptr) *value = reinterpret_cast<void*>(result);
  return error;
}

TOMBOLO_PTHREAD_CALL int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock,
                                              const timespec* until) {
  Pthreads* const own = pthreads();
  if (own == nullptr) return ESRCH;
  const Deadline deadline{.clock = clock, .at = *until};
  if (!deadline.valid()) return EINVAL;
  flush_output();
  int error = EBUSY;
  tombolo::dsm::wait_until(own->program.memory(), [&] {
    error = pthread_tryjoin_np(thread, value);
    return error != EBUSY || deadline.passed();
  });
  return error == EBUSY ? ETIMEDOUT : error;
}

TOMBOLO_PTHREAD_CALL int pthread_timedjoin_np(pthread_t thread, void** value,
                                              const timespec* until) {
  return pthread_clockjoin_np(thread, value, CLOCK_REALTIME, until);
}

TOMBOLO_PTHREAD_CALL int pthread_detach(pthread_t thread) noexcept {
  Pthreads* const own = pthreads();
  if (own == nullptr)
    return ThreadedProgram::is_of_the_runtime() ? TOMBOLO_HOST(pthread_detach)(thread) : ESRCH;
  return own->program.threads().detach(thread);
}

TOMBOLO_PTHREAD_CALL pthread_t pthread_self() noexcept {
  ThreadedProgram* const program = ThreadedProgram::here();
  return program == nullptr ? TOMBOLO_HOST(pthread_self)() : program->self();
}

TOMBOLO_PTHREAD_CALL void pthread_exit(void* value) {
  Pthreads* const own = pthreads();
  if (own != nullptr && own->program.is_first()) own->program.first_thread_ends();
  TOMBOLO_HOST(pthread_exit)(value);
  __builtin_unreachable();
}

TOMBOLO_PTHREAD_CALL int pthread_kill(pthread_t thread, int signal) noexcept {
  Pthreads* const own = pthreads();
  pthread_t in_the_host = 0;
  if (is_own(thread, in_the_host)) {
    if (!signals_are_served() || !is_withheld(signal))
      return TOMBOLO_HOST(pthread_kill)(in_the_host, signal);
    tombolo::dsm::raise_withheld(signal);
    return 0;
  }
  return own->program.signal(thread, signal);
}

// ---- Cancellation: deferred, at the calls of this library that wait (waiting_calls.cpp) --------

TOMBOLO_PTHREAD_CALL int pthread_cancel(pthread_t thread) {
  Pthreads* const own = pthreads();
  if (own == nullptr) return ESRCH;
  if (thread == ThreadTable::first_thread)
    return refuse("pthread_cancel", "the program's first thread ends with the program");
  const int error = own->program.threads().ask_cancel(thread);
  if (error == 0) own->program.wake_up(thread);
  return error;
}

TOMBOLO_PTHREAD_CALL void pthread_testcancel() { end_if_cancelled(); }

TOMBOLO_PTHREAD_CALL int pthread_setcancelstate(int state, int* former) {
  Pthreads* const own = pthreads();
  if (own == nullptr) return TOMBOLO_HOST(pthread_setcancelstate)(state, former);
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  if (former != nullptr)
    *former = own->cancel_enabled ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
  own->cancel_enabled = state == PTHREAD_CANCEL_ENABLE;
  if (!own->program.is_first()) tombolo::host::restart_after_wake_ups(!own->cancel_enabled);
  return 0;
}

TOMBOLO_PTHREAD_CALL int pthread_setcanceltype(int type, int* former) {
  if (former != nullptr) *former = PTHREAD_CANCEL_DEFERRED;
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
    return refuse("pthread_setcanceltype", "a thread is cancelled where it waits, not anywhere");
  return type == PTHREAD_CANCEL_DEFERRED ? 0 : EINVAL;
}

// ---- Of the calling thread, by the C library's name of it ------------------------------------

TOMBOLO_PTHREAD_CALL int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return 0;  // it would be seen in lists of processes only
  return TOMBOLO_HOST(pthread_setname_np)(in_the_host, name);
}

TOMBOLO_PTHREAD_CALL int pthread_getname_np(pthread_t thread, char* name,
                                            std::size_t bytes) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_getname_np");
  return TOMBOLO_HOST(pthread_getname_np)(in_the_host, name, bytes);
}

TOMBOLO_PTHREAD_CALL int pthread_getcpuclockid(pthread_t thread, clockid_t* clock) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_getcpuclockid");
  return TOMBOLO_HOST(pthread_getcpuclockid)(in_the_host, clock);
}

TOMBOLO_PTHREAD_CALL int pthread_getattr_np(pthread_t thread, pthread_attr_t* out) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_getattr_np");
  const int error = TOMBOLO_HOST(pthread_getattr_np)(in_the_host, out);
  Pthreads* const own = pthreads();
  if (error != 0 || own == nullptr) return error;
  // The C library's own stack of the thread is another one.
  const std::span<std::byte> stack = own->program.stack();
  return pthread_attr_setstack(out, stack.data(), stack.size());
}

TOMBOLO_PTHREAD_CALL int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                                const cpu_set_t* processors) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_setaffinity_np");
  return TOMBOLO_HOST(pthread_setaffinity_np)(in_the_host, bytes, processors);
}

TOMBOLO_PTHREAD_CALL int pthread_getaffinity_np(pthread_t thread, std::size_t bytes,
                                                cpu_set_t* processors) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_getaffinity_np");
  return TOMBOLO_HOST(pthread_getaffinity_np)(in_the_host, bytes, processors);
}

TOMBOLO_PTHREAD_CALL int pthread_setschedparam(pthread_t thread, int policy,
                                               const sched_param* parameters) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_setschedparam");
  return TOMBOLO_HOST(pthread_setschedparam)(in_the_host, policy, parameters);
}

TOMBOLO_PTHREAD_CALL int pthread_getschedparam(pthread_t thread, int* policy,
                                               sched_param* parameters) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_getschedparam");
  return TOMBOLO_HOST(pthread_getschedparam)(in_the_host, policy, parameters);
}

TOMBOLO_PTHREAD_CALL int pthread_setschedprio(pthread_t thread, int priority) noexcept {
  pthread_t in_the_host = 0;
  if (!is_own(thread, in_the_host)) return refuse_of_others("pthread_setschedprio");
  return TOMBOLO_HOST(pthread_setschedprio)(in_the_host, priority);
}
