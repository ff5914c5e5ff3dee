// SPDX-License-Identifier: Apache-2.0
// Purpose: see span_calls.h.
// Thread safety: see span_calls.h.
#include "dsm/compiler/analysis/span_calls.h"

namespace tombolo::dsm::compiler {

namespace {

struct Known {
  SpanCall call;
  std::initializer_list<const char*> names;
};

const std::initializer_list<Known> known_calls = {
    {SpanCall::begins,
     {"pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_spin_lock",
      "mtx_lock", "tombolo_dsm_mutex_lock", "GOMP_critical_start", "GOMP_critical_name_start",
      "GOMP_atomic_start", "__kmpc_critical", "__kmpc_critical_with_hint", "omp_set_lock",
      "omp_set_nest_lock", "__kmpc_set_lock",
      // Of libstdc++, inline.
      "_ZNSt5mutex4lockEv", "_ZNSt15recursive_mutex4lockEv", "_ZNSt12shared_mutex4lockEv",
      "_ZNSt12shared_mutex11lock_sharedEv", "_ZNSt22__shared_mutex_pthread4lockEv",
      "_ZNSt22__shared_mutex_pthread11lock_sharedEv", "_ZNSt11timed_mutex4lockEv",
      "_ZNSt21recursive_timed_mutex4lockEv", "_ZL20__gthread_mutex_lockP15pthread_mutex_t",
      "_ZL30__gthread_recursive_mutex_lockP15pthread_mutex_t"}},
    {SpanCall::ends,
     {"pthread_mutex_unlock",
      "pthread_rwlock_unlock",
      "pthread_spin_unlock",
      "mtx_unlock",
      "tombolo_dsm_mutex_unlock",
      "GOMP_critical_end",
      "GOMP_critical_name_end",
      "GOMP_atomic_end",
      "__kmpc_end_critical",
      "omp_unset_lock",
      "omp_unset_nest_lock",
      "__kmpc_unset_lock",
      "_ZNSt5mutex6unlockEv",
      "_ZNSt15recursive_mutex6unlockEv",
      "_ZNSt12shared_mutex6unlockEv",
      "_ZNSt12shared_mutex13unlock_sharedEv",
      "_ZNSt22__shared_mutex_pthread6unlockEv",
      "_ZNSt22__shared_mutex_pthread13unlock_sharedEv",
      "_ZNSt11timed_mutex6unlockEv",
      "_ZNSt21recursive_timed_mutex6unlockEv",
      "_ZL22__gthread_mutex_unlockP15pthread_mutex_t",
      "_ZL32__gthread_recursive_mutex_unlockP15pthread_mutex_t"}},
    {SpanCall::tries_zero,
     {"pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
      "pthread_rwlock_tryrdlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedrdlock",
      "pthread_rwlock_timedwrlock", "pthread_rwlock_clockrdlock", "pthread_rwlock_clockwrlock",
      "pthread_spin_trylock", "mtx_trylock", "mtx_timedlock",
      "_ZL23__gthread_mutex_trylockP15pthread_mutex_t"}},
    {SpanCall::tries_true,
     {"_ZNSt5mutex8try_lockEv", "_ZNSt15recursive_mutex8try_lockEv",
      "_ZNSt12shared_mutex8try_lockEv", "_ZNSt12shared_mutex15try_lock_sharedEv",
      "_ZNSt11timed_mutex8try_lockEv", "_ZNSt21recursive_timed_mutex8try_lockEv", "omp_test_lock",
      "tombolo_dsm_mutex_trylock"}},
};

}  // namespace

SpanCalls::SpanCalls(const std::vector<std::string>& beginning,
                     const std::vector<std::string>& ending) {
  for (const Known& known : known_calls)
    for (const char* name : known.names) calls_[name] = known.call;
  for (const std::string& name : beginning) calls_[name] = SpanCall::begins;
  for (const std::string& name : ending) calls_[name] = SpanCall::ends;
}

SpanCall SpanCalls::of(const llvm::Function& callee) const {
  return calls_.lookup(callee.getName());
}

SpanCall SpanCalls::of(const llvm::Instruction& instruction) const {
  const llvm::Function* callee = callee_of(instruction);
  return callee == nullptr ? SpanCall::none : of(*callee);
}

const llvm::Function* callee_of(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return nullptr;
  return llvm::dyn_cast<llvm::Function>(call->getCalledOperand()->stripPointerCastsAndAliases());
}

}  // namespace tombolo::dsm::compiler
