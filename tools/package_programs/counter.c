/* SPDX-License-Identifier: Apache-2.0
 * Four threads count to 4000 together, under a mutex or, with -DATOMIC, by an atomic instruction. C and C++. */
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kEach = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void* count(void* argument) {
  for (int i = 0; i < kEach; ++i) {
#ifdef ATOMIC
    __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
#else
    pthread_mutex_lock(&mutex);
    ++total;
    pthread_mutex_unlock(&mutex);
#endif
  }
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, count, NULL) != 0) {
      return 1;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("counted %ld\n", total);
  return total == (long)kThreads * kEach ? 0 : 1;
}
