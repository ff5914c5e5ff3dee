// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls of tombolo/dsm.h for threads that the program creates, their keys, and
// reductions of some threads.
// Thread safety: the thread that calls tombolo_dsm_init(), or a created one, alone in each process.
#include <concepts>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "dsm/api/include/tombolo/dsm.h"
#include "dsm/api/program.h"
#include "dsm/threads/partial_reduction.h"

namespace tombolo::dsm {
namespace {

CreatedThreads& threads(const char* call) {
  CreatedThreads* const threads = program(call).threads();
  TOMBOLO_CHECK(threads != nullptr, "{}: all threads run main(); start with tombolo_dsm_init_first",
                call);
  return *threads;
}

// ---- Reductions ---------------------------------------------------------------------------------

template <class V>
V combined(const char* call, tombolo_dsm_op op, V a, V b) {
  switch (op) {
    case TOMBOLO_DSM_SUM:
      return a + b;
    case TOMBOLO_DSM_PRODUCT:
      return a * b;
    case TOMBOLO_DSM_MIN:
      return b < a ? b : a;
    case TOMBOLO_DSM_MAX:
      return a < b ? b : a;
    case TOMBOLO_DSM_AND:
      return static_cast<V>(a != V{} && b != V{});
    case TOMBOLO_DSM_OR:
      return static_cast<V>(a != V{} || b != V{});
    default:
      break;
  }
  if constexpr (std::integral<V>) {
    if (op == TOMBOLO_DSM_BIT_AND) return a & b;
    if (op == TOMBOLO_DSM_BIT_OR) return a | b;
    if (op == TOMBOLO_DSM_BIT_XOR) return a ^ b;
  }
  TOMBOLO_CHECK(std::integral<V>, "{}: the operation {} is one of whole numbers", call,
                static_cast<int>(op));
  return a;
}

template <class V>
V value_in(std::uint64_t word) {
  V value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class V>
std::uint64_t word_of(V value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

template <class V>
void reduce(const char* call, const tombolo_dsm_redvar_t& variable, const void* value,
            void* result) {
  const auto op = static_cast<tombolo_dsm_op>(variable.operation);
  const auto both = [&]<class U>(std::type_identity<U>, std::uint64_t a, std::uint64_t b) {
    return word_of(combined(call, op, value_in<U>(a), value_in<U>(b)));
  };
  const auto combine = [&](std::uint64_t a, std::uint64_t b) {
    if constexpr (std::signed_integral<V>) {
      // Sums and products of signed numbers wrap.
      if (op == TOMBOLO_DSM_SUM || op == TOMBOLO_DSM_PRODUCT)
        return both(std::type_identity<std::make_unsigned_t<V>>(), a, b);
    }
    return both(std::type_identity<V>(), a, b);
  };
  std::uint64_t word = 0;
  std::memcpy(&word, value, sizeof(V));
  ProgramMemory& memory = program(call).memory();
  Program::must(PartialReduction(memory, variable.number, variable.threads).reduce(word, combine));
  std::memcpy(result, &word, sizeof(V));
}

}  // namespace
}  // namespace tombolo::dsm

using tombolo::dsm::Program;
using tombolo::dsm::program;
using tombolo::dsm::threads;

extern "C" {

[[gnu::visibility("default")]] int tombolo_dsm_thread_create(tombolo_dsm_thread_t* thread,
                                                             void* (*start)(void*),
                                                             void* argument) {
  tombolo::dsm::ThreadHandle made = 0;
  const int error = threads(__func__).create(start, argument, made);
  if (error == 0) thread->number = made;
  return error;
}

[[gnu::visibility("default")]] int tombolo_dsm_thread_join(tombolo_dsm_thread_t thread,
                                                           void** value) {
  void* result = nullptr;
  const int error = threads(__func__).join(thread.number, result);
  if (error == 0 && value != nullptr) *value = result;
  return error;
}

[[gnu::visibility("default")]] tombolo_dsm_thread_t tombolo_dsm_thread_self(void) {
  return {threads(__func__).self()};
}

[[gnu::visibility("default")]] int tombolo_dsm_key_create(tombolo_dsm_key_t* key,
                                                          void (*destructor)(void*)) {
  std::uint32_t number = 0;
  const int error = program(__func__).take_key(number, destructor);
  if (error == 0) key->number = number;
  return error;
}

[[gnu::visibility("default")]] int tombolo_dsm_setspecific(tombolo_dsm_key_t key,
                                                           const void* value) {
  return program(__func__).keys().set(key.number, value);
}

[[gnu::visibility("default")]] void* tombolo_dsm_getspecific(tombolo_dsm_key_t key) {
  return program(__func__).keys().get(key.number);
}

[[gnu::visibility("default")]] tombolo_dsm_redvar_t tombolo_dsm_redvar_create(tombolo_dsm_op op,
                                                                              unsigned count) {
  Program& in = program(__func__);
  TOMBOLO_CHECK(count != 0 && count <= in.memory().threads(),
                "{}: a reduction of {} threads; the program has {}", __func__, count,
                in.memory().threads());
  TOMBOLO_CHECK(static_cast<unsigned>(op) <= TOMBOLO_DSM_OR, "{}: no operation has the number {}",
                __func__, static_cast<int>(op));
  const auto words = tombolo::dsm::PartialReduction::words_needed(count);
  return {static_cast<std::uint32_t>(in.take_words(__func__, words)), count,
          static_cast<std::uint32_t>(op)};
}

[[gnu::visibility("default")]] void tombolo_dsm_reduce(tombolo_dsm_redvar_t variable,
                                                       tombolo_dsm_type type, const void* value,
                                                       void* result) {
  TOMBOLO_CHECK(variable.threads != 0, "{}: tombolo_dsm_redvar_create has not made this variable",
                __func__);
  switch (type) {
    case TOMBOLO_DSM_INT32:
      return tombolo::dsm::reduce<std::int32_t>(__func__, variable, value, result);
    case TOMBOLO_DSM_UINT32:
      return tombolo::dsm::reduce<std::uint32_t>(__func__, variable, value, result);
    case TOMBOLO_DSM_INT64:
      return tombolo::dsm::reduce<std::int64_t>(__func__, variable, value, result);
    case TOMBOLO_DSM_UINT64:
      return tombolo::dsm::reduce<std::uint64_t>(__func__, variable, value, result);
    case TOMBOLO_DSM_FLOAT:
      return tombolo::dsm::reduce<float>(__func__, variable, value, result);
    case TOMBOLO_DSM_DOUBLE:
      return tombolo::dsm::reduce<double>(__func__, variable, value, result);
  }
  TOMBOLO_CHECK(false, "{}: no type has the number {}", __func__, static_cast<int>(type));
}

}  // extern "C"
