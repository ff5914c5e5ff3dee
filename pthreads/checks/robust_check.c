// SPDX-License-Identifier: Apache-2.0
// Purpose: robust mutexes: a thread ends with one, and the next owner is told. Arguments: threads,
// rounds.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex, recursive, plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int left, right, waits;

static void* end_with_it(void* which) {
  pthread_mutex_lock(which);
  ++left;  // and not right
  return NULL;
}

static void* end_with_both(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&recursive);
  pthread_exit(NULL);
}

static const char* name_of(int error) { return error == 0 ? "fine" : strerrorname_np(error); }

static void* take(void* which) {
  const int error = pthread_mutex_lock(which);
  const int mended = error == EOWNERDEAD ? pthread_mutex_consistent(which) : 0;
  if (error == EOWNERDEAD) right = left;
  printf("lock %s, mended %s, even %d\n", name_of(error), name_of(mended), left == right);
  printf("unlock %s\n", name_of(pthread_mutex_unlock(which)));
  return NULL;
}

static void* leave_broken(void* which) {
  const int error = pthread_mutex_trylock(which);
  printf("trylock %s\n", name_of(error));
  printf("unlock %s\n", name_of(pthread_mutex_unlock(which)));
  printf("then %s\n", name_of(pthread_mutex_lock(which)));
  return NULL;
}

static void* wait_for_change(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&plain);
  waits = 1;
  pthread_mutex_unlock(&plain);
  int error = 0;
  while (waits != 2 && error == 0) error = pthread_cond_wait(&changed, &mutex);
  printf("waited %s, mended %s\n", name_of(error), name_of(pthread_mutex_consistent(&mutex)));
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* change_and_end(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  waits = 2;
  pthread_cond_signal(&changed);
  return NULL;
}

static void run(void* (*work)(void*), void* argument) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, argument);
  pthread_join(thread, NULL);
}

static void conditions(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_change, NULL);
  for (int seen = 0; !seen;) {
    pthread_mutex_lock(&plain);
    seen = waits;
    pthread_mutex_unlock(&plain);
  }
  run(change_and_end, NULL);
  pthread_join(thread, NULL);
}

static void make(pthread_mutex_t* made, int type) {
  pthread_mutexattr_t attributes;
  int robust = 0;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  const int error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_getrobust(&attributes, &robust);
  printf("robust %s %d\n", name_of(error), robust == PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(made, &attributes);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  make(&mutex, PTHREAD_MUTEX_NORMAL);
  make(&recursive, PTHREAD_MUTEX_RECURSIVE);
  printf("not broken: %s\n", name_of(pthread_mutex_consistent(&mutex)));
  for (int i = 0; i < atoi(argv[2]); ++i) {
    run(end_with_it, i % 2 == 0 ? &mutex : &recursive);
    run(take, i % 2 == 0 ? &mutex : &recursive);
  }
  run(end_with_both, NULL);
  take(&mutex);
  take(&recursive);
  conditions();
  run(end_with_it, &mutex);
  run(leave_broken, &mutex);
  printf("no more: %s\n", name_of(pthread_mutex_lock(&mutex)));
  printf("destroy %s\n", name_of(pthread_mutex_destroy(&mutex)));
  make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
  take(&mutex);
  return 0;
}
