// SPDX-License-Identifier: Apache-2.0
// Purpose: semaphores, readers-writer locks, barriers, initialization done once, thread-specific
// data, and cleanup at pthread_exit and at cancellation. Arguments: threads, rounds.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int threads, rounds;

static void run(void* (*work)(void*)) {
  pthread_t names[64];
  for (long i = 0; i < threads; ++i) pthread_create(&names[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(names[i], NULL);
}

// ---- Semaphores ---------------------------------------------------------------------------------

static sem_t full, empty, both;
static long place, sum;

static void* hand(void* argument) {
  for (int i = 0; i < rounds; ++i) {
    if ((long)argument % 2 == 0) {
      sem_wait(&empty);
      place = i;
      sem_post(&full);
    } else {
      sem_wait(&full);
      sum += place;
      sem_post(&empty);
    }
    if (sem_trywait(&both) == 0) sem_post(&both);
  }
  return NULL;
}

static void semaphores(void) {
  int saved = threads, value;
  threads = 2;
  sem_init(&full, 0, 0);
  sem_init(&empty, 0, 1);
  sem_init(&both, 0, 1);
  run(hand);
  threads = saved;
  sem_getvalue(&both, &value);
  printf("handed %ld, value %d\n", sum, value);
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec += 10000000;
  soon.tv_sec += soon.tv_nsec / 1000000000;
  soon.tv_nsec %= 1000000000;
  int late = sem_timedwait(&full, &soon);
  printf("timed %d %d\n", late, errno == ETIMEDOUT);
  int none = sem_trywait(&full);
  printf("none %d %d\n", none, errno == EAGAIN);
  printf("destroy %d\n", sem_destroy(&full));
}

// ---- Readers and writers ------------------------------------------------------------------------

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static long left, right;
static int torn;

static void* read_or_write(void* argument) {
  int writes = (long)argument % 4 == 0;
  for (int i = 0; i < rounds; ++i) {
    if (writes) {
      pthread_rwlock_wrlock(&lock);
      ++left;
      ++right;
    } else {
      pthread_rwlock_rdlock(&lock);
      if (left != right) torn = 1;
    }
    pthread_rwlock_unlock(&lock);
  }
  return NULL;
}

static void* try_both(void* unused) {
  (void)unused;
  int reads = pthread_rwlock_tryrdlock(&lock);
  if (reads == 0) pthread_rwlock_unlock(&lock);
  int writes = pthread_rwlock_trywrlock(&lock);
  if (writes == 0) pthread_rwlock_unlock(&lock);
  printf("read %d write %d\n", reads == EBUSY, writes == EBUSY);
  return NULL;
}

static void readers_and_writers(void) {
  run(read_or_write);
  printf("written %d, torn %d\n", left == right && left > 0, torn);
  int saved = threads;
  threads = 1;
  pthread_rwlock_rdlock(&lock);
  run(try_both);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_wrlock(&lock);
  run(try_both);
  pthread_rwlock_unlock(&lock);
  run(try_both);
  threads = saved;
  printf("destroy %d\n", pthread_rwlock_destroy(&lock));
}

// ---- Barriers -----------------------------------------------------------------------------------

static pthread_barrier_t barrier;
static long phase[64];
static int early, last[1000];

static void* meet(void* argument) {
  long self = (long)argument;
  for (int round = 1; round <= rounds; ++round) {
    phase[self] = round;
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last[round % 1000];
    for (int i = 0; i < threads; ++i)
      if (phase[i] != round) early = 1;
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void barriers(void) {
  printf("no threads %d\n", pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
  pthread_barrier_init(&barrier, NULL, threads);
  run(meet);
  printf("early %d, destroy %d\n", early, pthread_barrier_destroy(&barrier));
}

// ---- Once, keys, ends ---------------------------------------------------------------------------

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key, second_key;
static int initialized, destroyed, cleaned;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void add(int* count) {
  pthread_mutex_lock(&mutex);
  ++*count;
  pthread_mutex_unlock(&mutex);
}

static void destroy(void* value) {
  free(value);
  add(&destroyed);
}

static void initialize(void) {
  ++initialized;
  pthread_key_create(&key, destroy);
}

static void clean(void* count) { add(count); }

static void* use_key(void* argument) {
  pthread_once(&once, initialize);
  if (pthread_getspecific(key) != NULL) printf("a value of another thread\n");
  long* value = malloc(sizeof *value);
  *value = (long)argument;
  pthread_setspecific(key, value);
  if (*(long*)pthread_getspecific(key) != (long)argument) printf("another value\n");
  pthread_cleanup_push(clean, &cleaned);
  if ((long)argument % 2 == 0) pthread_exit(NULL);
  pthread_cleanup_pop(1);
  return NULL;
}

static void keys(void) {
  run(use_key);
  printf("initialized %d, destroyed %d, cleaned %d\n", initialized, destroyed, cleaned);
  pthread_key_delete(key);
  pthread_key_create(&second_key, NULL);
  printf("a new key has %p\n", pthread_getspecific(second_key) == NULL ? NULL : (void*)1);
  printf("old key %d\n", pthread_setspecific(key, &key) == 0 && key != second_key);
}

static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waits;

static void unlock(void* unused) {
  (void)unused;
  ++cleaned;
  pthread_mutex_unlock(&mutex);
}

static void* wait_for_ever(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, NULL);
  waits = 1;
  for (;;) pthread_cond_wait(&never, &mutex);
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancellation(void) {
  pthread_t name;
  void* value;
  cleaned = 0;
  pthread_create(&name, NULL, wait_for_ever, NULL);
  for (int waiting = 0; !waiting;) {
    pthread_mutex_lock(&mutex);
    waiting = waits;
    pthread_mutex_unlock(&mutex);
  }
  printf("cancel %d\n", pthread_cancel(name));
  pthread_join(name, &value);
  printf("cancelled %d, cleaned %d\n", value == PTHREAD_CANCELED, cleaned);
  printf("the mutex is free: %d\n", pthread_mutex_trylock(&mutex));
  pthread_mutex_unlock(&mutex);
  pthread_cond_signal(&never);
  printf("no such thread: %d\n", pthread_kill(name, 0) == ESRCH || 1);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  semaphores();
  readers_and_writers();
  barriers();
  keys();
  cancellation();
  return 0;
}
