// SPDX-License-Identifier: Apache-2.0
// Purpose: the threads of C11. Arguments: threads, rounds.
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

static int threads, rounds;
static mtx_t mutex, recursive;
static cnd_t changed;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int initialized, destroyed, turn, sum;

static void initialize(void) { ++initialized; }

static void destroy(void* value) {
  mtx_lock(&mutex);
  destroyed += *(int*)value;
  mtx_unlock(&mutex);
  free(value);
}

static int work(void* argument) {
  const int self = (int)(long)argument;
  int* const own = malloc(sizeof *own);
  *own = self;
  tss_set(key, own);
  call_once(&once, initialize);
  for (int i = 0; i < rounds; ++i) {
    mtx_lock(&mutex);
    while (turn % threads != self) cnd_wait(&changed, &mutex);
    ++turn;
    cnd_broadcast(&changed);
    mtx_lock(&recursive);
    if (mtx_trylock(&recursive) == thrd_success) mtx_unlock(&recursive);
    sum += self;
    mtx_unlock(&recursive);
    mtx_unlock(&mutex);
  }
  if (*(int*)tss_get(key) != self) return -1;
  if (self % 2 == 1) thrd_exit(self + 100);
  return self;
}

static int busy(void* unused) {
  (void)unused;
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  const int tried = mtx_trylock(&mutex);
  printf("busy %d, timed out %d\n", tried == thrd_busy,
         mtx_timedlock(&mutex, &now) == thrd_timedout);
  return 0;
}

static int wait_for_nothing(void* unused) {
  (void)unused;
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  mtx_lock(&recursive);
  const int waited = cnd_timedwait(&changed, &recursive, &now);
  mtx_unlock(&recursive);
  return waited == thrd_timedout;
}

int main(int argc, char** argv) {
  thrd_t names[64];
  int result;
  if (argc != 3) return 2;
  threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  printf("made %d %d %d %d\n", mtx_init(&mutex, mtx_timed),
         mtx_init(&recursive, mtx_plain | mtx_recursive), cnd_init(&changed),
         tss_create(&key, destroy));
  for (long i = 0; i < threads; ++i)
    if (thrd_create(&names[i], work, (void*)i) != thrd_success) return 3;
  for (int i = 0; i < threads; ++i) {
    thrd_join(names[i], &result);
    printf("thread %d: %d\n", i, result);
  }
  printf("turns %d, sum %d, initialized %d, destroyed %d\n", turn, sum, initialized, destroyed);
  mtx_lock(&mutex);
  thrd_create(names, busy, NULL);
  thrd_join(names[0], NULL);
  mtx_unlock(&mutex);
  thrd_create(names, wait_for_nothing, NULL);
  thrd_join(names[0], &result);
  printf("timed out %d, myself %d\n", result, thrd_equal(thrd_current(), thrd_current()) != 0);
  mtx_destroy(&mutex);
  cnd_destroy(&changed);
  tss_delete(key);
  return 0;
}
