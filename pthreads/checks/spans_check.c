// SPDX-License-Identifier: Apache-2.0
// Purpose: threads in turns, each of which changes a few bytes of one page under a mutex: by plain
// stores, in functions that are called with the mutex and without, and by memcpy. Other bytes of
// the page belong to one thread each. With semaphores in the place of the mutex, the stores are
// before the post that lets the next thread go on.
//
//   spans_check THREADS ROUNDS [semaphores]
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_threads = 16 };

static struct {
  long count;
  int turn;
  char text[16];
  double sum;
  long own[most_threads];
  pthread_mutex_t mutex;
  pthread_cond_t changed;
} shared __attribute__((aligned(4096))) = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                           .changed = PTHREAD_COND_INITIALIZER};

static sem_t turns[most_threads];
static int threads = 2;
static int rounds = 100;

__attribute__((noinline)) static void add(long* to, long number) { *to += number; }

static void change(int self, int round) {
  add(&shared.count, round);
  shared.sum += self + 0.5;
  char line[16];
  snprintf(line, sizeof line, "%d of %d", round, self);
  memcpy(shared.text, line, sizeof line);
  ++shared.turn;
}

static void take_turn(int self, int round) {
  pthread_mutex_lock(&shared.mutex);
  while (shared.turn % threads != self) pthread_cond_wait(&shared.changed, &shared.mutex);
  change(self, round);
  pthread_cond_broadcast(&shared.changed);
  pthread_mutex_unlock(&shared.mutex);
}

static void take_turn_by_semaphores(int self, int round) {
  sem_wait(&turns[self]);
  change(self, round);
  sem_post(&turns[(self + 1) % threads]);
}

static void (*turn_of)(int self, int round) = take_turn;

static void* run(void* number) {
  const int self = *(int*)number;
  for (int round = 0; round < rounds; ++round) {
    turn_of(self, round);
    if (round % 50 == 0) add(&shared.own[self], round + 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) threads = atoi(argv[1]);
  if (argc > 2) rounds = atoi(argv[2]);
  if (argc > 3) turn_of = take_turn_by_semaphores;
  for (int i = 0; i < threads; ++i) sem_init(&turns[i], 0, i == 0);
  pthread_t all[most_threads];
  int numbers[most_threads];
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    if (pthread_create(&all[i], NULL, run, &numbers[i]) != 0) return 1;
  }
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  printf("%ld %d %s %g", shared.count, shared.turn, shared.text, shared.sum);
  for (int i = 0; i < threads; ++i) printf(" %ld", shared.own[i]);
  printf("\n");
  return 0;
}
