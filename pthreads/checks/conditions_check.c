// SPDX-License-Identifier: Apache-2.0
// Purpose: condition variables: a barrier that waits without a loop, a queue between producers and
// consumers, signals one by one, and waits with an end. Arguments: threads, rounds.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int threads, rounds;

// ---- A barrier without a loop -----------------------------------------------------------------

static pthread_mutex_t barrier_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t barrier_all = PTHREAD_COND_INITIALIZER;
static int arrived;
static long phases[64];
static int early;

static void barrier(void) {
  pthread_mutex_lock(&barrier_mutex);
  if (++arrived == threads) {
    arrived = 0;
    pthread_cond_broadcast(&barrier_all);
  } else {
    pthread_cond_wait(&barrier_all, &barrier_mutex);
  }
  pthread_mutex_unlock(&barrier_mutex);
}

static void* meet(void* argument) {
  long self = (long)argument;
  for (int round = 1; round <= rounds; ++round) {
    phases[self] = round;
    barrier();
    for (int i = 0; i < threads; ++i)
      if (phases[i] != round) ++early;
    barrier();
  }
  return NULL;
}

// ---- A queue ------------------------------------------------------------------------------------

#define PLACES 4
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static long* queue[PLACES];
static int first, used;
static long consumed;

static void* produce(void* argument) {
  for (long i = 0; i < rounds; ++i) {
    long* item = malloc(sizeof *item);
    *item = (long)argument * 1000 + i;
    pthread_mutex_lock(&queue_mutex);
    while (used == PLACES) pthread_cond_wait(&not_full, &queue_mutex);
    queue[(first + used++) % PLACES] = item;
    pthread_mutex_unlock(&queue_mutex);
    pthread_cond_signal(&not_empty);
  }
  return NULL;
}

static void* consume(void* unused) {
  (void)unused;
  for (long i = 0; i < rounds; ++i) {
    pthread_mutex_lock(&queue_mutex);
    while (used == 0) pthread_cond_wait(&not_empty, &queue_mutex);
    long* item = queue[first];
    first = (first + 1) % PLACES;
    --used;
    consumed += *item;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&queue_mutex);
    free(item);
  }
  return NULL;
}

// ---- Signals ------------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, gone = PTHREAD_COND_INITIALIZER;
static int waiting, woken;

static void* wait_once(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cond_signal(&gone);
  pthread_cond_wait(&go, &mutex);  // without a loop
  ++woken;
  pthread_cond_signal(&gone);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void one_by_one(void) {
  pthread_t names[64];
  for (int i = 0; i < threads; ++i) pthread_create(&names[i], NULL, wait_once, NULL);
  pthread_mutex_lock(&mutex);
  while (waiting < threads) pthread_cond_wait(&gone, &mutex);
  for (int i = 0; i < threads; ++i) {
    int before = woken;
    pthread_cond_signal(&go);
    while (woken == before) pthread_cond_wait(&gone, &mutex);
    if (woken != before + 1) printf("%d were woken by one signal\n", woken - before);
  }
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < threads; ++i) pthread_join(names[i], NULL);
  printf("%d woken one by one\n", woken);
}

static void timed(clockid_t clock) {
  pthread_condattr_t attributes;
  pthread_cond_t never;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, clock);
  pthread_cond_init(&never, &attributes);
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += 20000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex);
  int error = pthread_cond_timedwait(&never, &mutex, &at);
  struct timespec now;
  clock_gettime(clock, &now);
  int late = now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
  printf("%s, %s\n", error == ETIMEDOUT ? "timed out" : "woken", late ? "late" : "early");
  pthread_cond_signal(&never);  // the thread that left is not in the queue
  printf("destroy %d\n", pthread_cond_destroy(&never));
  pthread_mutex_unlock(&mutex);
}

static void run(void* (*work)(void*), void* (*other)(void*)) {
  pthread_t names[128];
  int made = 0;
  for (long i = 0; i < threads; ++i) {
    pthread_create(&names[made++], NULL, work, (void*)i);
    if (other != NULL) pthread_create(&names[made++], NULL, other, (void*)i);
  }
  for (int i = 0; i < made; ++i) pthread_join(names[i], NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  run(meet, NULL);
  printf("%d early of %ld rounds\n", early, phases[0]);
  run(produce, consume);
  printf("consumed %ld\n", consumed);
  one_by_one();
  timed(CLOCK_REALTIME);
  timed(CLOCK_MONOTONIC);
  return 0;
}
