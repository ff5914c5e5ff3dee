// SPDX-License-Identifier: Apache-2.0
// Purpose: mutexes of every kind, spin locks and timed locks. Arguments: threads, rounds.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MUTEXES 2048

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t many[MUTEXES];
static pthread_spinlock_t spin;
static long counts[MUTEXES];
static long counted, spun, nested;
static int rounds;

static void nest(int depth) {
  pthread_mutex_lock(&recursive);
  ++nested;
  if (depth > 0) nest(depth - 1);
  pthread_mutex_unlock(&recursive);
}

static void* work(void* argument) {
  unsigned random = (unsigned)(long)argument * 2654435761u + 1;
  for (int i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&one);
    ++counted;
    pthread_mutex_unlock(&one);
    pthread_spin_lock(&spin);
    ++spun;
    pthread_spin_unlock(&spin);
    random = random * 1664525u + 1013904223u;
    unsigned chosen = random >> 21;
    while (pthread_mutex_trylock(&many[chosen]) == EBUSY) sched_yield();
    ++counts[chosen];
    pthread_mutex_unlock(&many[chosen]);
    if (i % 16 == 0) nest(3);
  }
  return NULL;
}

static const char* name_of(int error) {
  switch (error) {
    case 0:
      return "0";
    case EBUSY:
      return "EBUSY";
    case EDEADLK:
      return "EDEADLK";
    case EPERM:
      return "EPERM";
    case ETIMEDOUT:
      return "ETIMEDOUT";
    case EINVAL:
      return "EINVAL";
    default:
      return "another error";
  }
}

static struct timespec in_milliseconds(clockid_t clock, long ms) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += ms * 1000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

static void* other(void* mutex) {
  printf("another thread: trylock %s\n", name_of(pthread_mutex_trylock(mutex)));
  struct timespec soon = in_milliseconds(CLOCK_REALTIME, 20);
  printf("timedlock %s\n", name_of(pthread_mutex_timedlock(mutex, &soon)));
  soon = in_milliseconds(CLOCK_MONOTONIC, 20);
  printf("clocklock %s\n", name_of(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon)));
  soon.tv_nsec = -1;
  printf("no time %s\n", name_of(pthread_mutex_timedlock(mutex, &soon)));
  printf("destroy %s\n", name_of(pthread_mutex_destroy(mutex)));
  return NULL;
}

static void errors(int kind, const char* kind_name) {
  pthread_mutexattr_t attributes;
  pthread_mutex_t mutex;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(&mutex, &attributes);
  printf("%s: lock %s\n", kind_name, name_of(pthread_mutex_lock(&mutex)));
  if (kind != PTHREAD_MUTEX_NORMAL) printf("again %s\n", name_of(pthread_mutex_lock(&mutex)));
  printf("trylock %s\n", name_of(pthread_mutex_trylock(&mutex)));
  pthread_t thread;
  pthread_create(&thread, NULL, other, &mutex);
  pthread_join(thread, NULL);
  printf("unlock %s\n", name_of(pthread_mutex_unlock(&mutex)));
  if (kind == PTHREAD_MUTEX_RECURSIVE) {
    printf("unlock %s\n", name_of(pthread_mutex_unlock(&mutex)));
    printf("unlock %s\n", name_of(pthread_mutex_unlock(&mutex)));
  }
  if (kind != PTHREAD_MUTEX_NORMAL)
    printf("unlock of none %s\n", name_of(pthread_mutex_unlock(&mutex)));
  printf("destroy %s\n", name_of(pthread_mutex_destroy(&mutex)));
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  pthread_t names[64];
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < MUTEXES; ++i) pthread_mutex_init(&many[i], NULL);
  for (long i = 0; i < threads; ++i) pthread_create(&names[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(names[i], NULL);
  long sum = 0;
  for (int i = 0; i < MUTEXES; ++i) sum += counts[i];
  printf("%ld %ld %ld %ld\n", counted, spun, nested, sum);
  errors(PTHREAD_MUTEX_NORMAL, "normal");
  errors(PTHREAD_MUTEX_RECURSIVE, "recursive");
  errors(PTHREAD_MUTEX_ERRORCHECK, "checked");
  return 0;
}
