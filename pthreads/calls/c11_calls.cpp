// SPDX-License-Identifier: Apache-2.0
// Purpose: the threads of C11. The C library's objects of them are those of Pthreads by other
// names, and so they are here.
#include <threads.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "pthreads/calls/calls.h"

static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t) && sizeof(cnd_t) >= sizeof(pthread_cond_t));
static_assert(sizeof(tss_t) == sizeof(pthread_key_t) && sizeof(thrd_t) == sizeof(pthread_t));
static_assert(sizeof(once_flag) == sizeof(pthread_once_t));

namespace {

int result_of(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

pthread_mutex_t* same(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* same(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }

void* as_pointer(int value) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(value)); }

// In the program's heap, from the creator to the thread.
struct Start {
  thrd_start_t function;
  void* argument;
};

void* begin(void* object) {
  const Start start = *static_cast<Start*>(object);
  free(object);
  return as_pointer(start.function(start.argument));
}

}  // namespace

TOMBOLO_PTHREAD_CALL int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto* const start = static_cast<Start*>(malloc(sizeof(Start)));
  if (start == nullptr) return thrd_nomem;
  *start = {function, argument};
  const int error = pthread_create(thread, nullptr, &begin, start);
  if (error != 0) free(start);
  return error == EAGAIN ? thrd_nomem : result_of(error);
}
TOMBOLO_PTHREAD_CALL int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (error == 0 && result != nullptr)
    *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return result_of(error);
}
TOMBOLO_PTHREAD_CALL int thrd_detach(thrd_t thread) { return result_of(pthread_detach(thread)); }
TOMBOLO_PTHREAD_CALL thrd_t thrd_current() { return pthread_self(); }
TOMBOLO_PTHREAD_CALL void thrd_exit(int result) {
  pthread_exit(as_pointer(result));
  __builtin_unreachable();
}

TOMBOLO_PTHREAD_CALL int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if ((type & mtx_recursive) != 0) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  return result_of(pthread_mutex_init(same(mutex), &attributes));
}
TOMBOLO_PTHREAD_CALL int mtx_lock(mtx_t* mutex) {
  return result_of(pthread_mutex_lock(same(mutex)));
}
TOMBOLO_PTHREAD_CALL int mtx_trylock(mtx_t* mutex) {
  return result_of(pthread_mutex_trylock(same(mutex)));
}
TOMBOLO_PTHREAD_CALL int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  return result_of(pthread_mutex_timedlock(same(mutex), until));
}
TOMBOLO_PTHREAD_CALL int mtx_unlock(mtx_t* mutex) {
  return result_of(pthread_mutex_unlock(same(mutex)));
}
TOMBOLO_PTHREAD_CALL void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(same(mutex)); }

TOMBOLO_PTHREAD_CALL int cnd_init(cnd_t* condition) {
  return result_of(pthread_cond_init(same(condition), nullptr));
}
TOMBOLO_PTHREAD_CALL int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return result_of(pthread_cond_wait(same(condition), same(mutex)));
}
TOMBOLO_PTHREAD_CALL int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return result_of(pthread_cond_timedwait(same(condition), same(mutex), until));
}
TOMBOLO_PTHREAD_CALL int cnd_signal(cnd_t* condition) {
  return result_of(pthread_cond_signal(same(condition)));
}
TOMBOLO_PTHREAD_CALL int cnd_broadcast(cnd_t* condition) {
  return result_of(pthread_cond_broadcast(same(condition)));
}
TOMBOLO_PTHREAD_CALL void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(same(condition)); }

TOMBOLO_PTHREAD_CALL int tss_create(tss_t* key, tss_dtor_t destructor) {
  return result_of(pthread_key_create(key, destructor));
}
TOMBOLO_PTHREAD_CALL void tss_delete(tss_t key) { pthread_key_delete(key); }
TOMBOLO_PTHREAD_CALL int tss_set(tss_t key, void* value) {
  return result_of(pthread_setspecific(key, value));
}
TOMBOLO_PTHREAD_CALL void* tss_get(tss_t key) { return pthread_getspecific(key); }

TOMBOLO_PTHREAD_CALL void call_once(once_flag* flag, void (*function)()) {
  pthread_once(reinterpret_cast<pthread_once_t*>(flag), function);
}
