// SPDX-License-Identifier: Apache-2.0
// Purpose: the cost of a store with instrumentation: nanoseconds, outside of spans and in one, for
// stores that follow each other in an array, at random places of it, and to the nodes of a list in
// random order.
//
//   clang -O2 stores_bench.c -o plain -pthread && ./plain
//   tombolo-cc -O2 [--tombolo-stores=full] stores_bench.c -o recorded -pthread && ./recorded
//
// Without a runtime, a record is a call that stores nothing.
// Thread safety: one thread.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { elements = 4096, nodes = 4096, rounds = 2000, repetitions = 7 };

struct node {
  struct node* next;
  long value;
};

static double array[elements];
static struct node list[nodes];
static int order[nodes];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// In the place of the library's flag: there is no runtime that sets it.
__thread int tombolo_dsm_in_span = 0;

__attribute__((noinline)) void fill(double* to, long count, double value) {
  for (long i = 0; i < count; ++i) to[i] = value;
}

__attribute__((noinline)) void chase(struct node* node, long value) {
  for (; node; node = node->next) node->value = value;
}

static void fills(void) {
  for (int round = 0; round < rounds; ++round) fill(array, elements, round);
}

__attribute__((noinline)) void scatter(double* to, const int* places, long count, double value) {
  for (long i = 0; i < count; ++i) to[places[i]] = value;
}

static void scatters(void) {
  for (int round = 0; round < rounds; ++round) scatter(array, order, elements, round);
}

static void chases(void) {
  for (int round = 0; round < rounds; ++round) chase(list, round);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// The least of some repetitions.
static double ns_of(void (*work)(void), double stores) {
  double least = 1e30;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const double start = now();
    work();
    const double took = (now() - start) / stores;
    least = took < least ? took : least;
  }
  return least;
}

static void print(const char* where) {
  printf("%s: array %.3f ns, scattered %.3f ns, list %.3f ns a store\n", where,
         ns_of(fills, (double)rounds * elements), ns_of(scatters, (double)rounds * elements),
         ns_of(chases, (double)rounds * nodes));
}

// A random cycle's order, and the same each time.
static void link_nodes(void) {
  for (int i = 0; i < nodes; ++i) order[i] = i;
  srand(1);
  for (int i = nodes - 1; i > 0; --i) {
    const int other = rand() % (i + 1);
    const int kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  // The first node is the list's.
  for (int i = 0; i < nodes; ++i)
    if (order[i] == 0) {
      order[i] = order[0];
      order[0] = 0;
    }
  for (int i = 0; i + 1 < nodes; ++i) list[order[i]].next = &list[order[i + 1]];
}

int main(void) {
  link_nodes();
  print("outside of spans");
  pthread_mutex_lock(&mutex);
  tombolo_dsm_in_span = 1;
  print("in a span");
  tombolo_dsm_in_span = 0;
  pthread_mutex_unlock(&mutex);
  return 0;
}
