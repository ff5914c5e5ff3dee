// SPDX-License-Identifier: Apache-2.0
// Purpose: threads see the program's variables, heap and each other's stacks; creating, joining and
// detaching them, several at once and many one after another. Arguments: how many at once, how many
// in all.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static long in_data = 41;
static long in_bss[1 << 16];
static _Thread_local long own = 7;
static pthread_t first;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int detached_done;

struct part {
  int number;
  long* on_stack;
  char** texts;
};

static void* work(void* argument) {
  struct part* part = argument;
  if (own != 7) return "thread-local memory of another thread";
  own += part->number;
  if (pthread_equal(pthread_self(), first)) return "the name of the first thread";
  if (pthread_join(pthread_self(), NULL) != EDEADLK) return "a thread joined itself";
  errno = part->number + 1;
  in_bss[part->number * 100] = part->number;
  part->on_stack[part->number] += part->number;
  part->texts[part->number] = malloc(32);
  sprintf(part->texts[part->number], "text of %d", part->number);
  pthread_mutex_lock(&mutex);
  ++in_data;
  pthread_mutex_unlock(&mutex);
  if (errno != part->number + 1) return "errno of another thread";
  if (own != 7 + part->number) return "another thread changed thread-local memory";
  return NULL;
}

static void several(int threads) {
  pthread_t names[MOST];
  struct part parts[MOST];
  long on_stack[MOST] = {0};
  char* texts[MOST];
  for (int i = 0; i < threads; ++i) {
    parts[i] = (struct part){i, on_stack, texts};
    on_stack[i] = 1000;
    if (pthread_create(&names[i], NULL, work, &parts[i]) != 0) {
      printf("thread %d was not created\n", i);
      exit(1);
    }
  }
  for (int i = 0; i < threads; ++i) {
    void* error;
    if (pthread_join(names[i], &error) != 0) printf("thread %d was not joined\n", i);
    if (error != NULL) printf("thread %d: %s\n", i, (char*)error);
    printf("%ld %ld %s\n", in_bss[i * 100], on_stack[i], texts[i]);
    free(texts[i]);
  }
}

static void* give_back(void* value) { return value; }

static void one_after_another(int threads) {
  long sum = 0;
  for (long i = 0; i < threads; ++i) {
    pthread_t name;
    void* value;
    if (pthread_create(&name, NULL, give_back, (void*)i) != 0) printf("create %ld failed\n", i);
    if (pthread_join(name, &value) != 0) printf("join %ld failed\n", i);
    sum += (long)value;
  }
  printf("%d threads one after another: %ld\n", threads, sum);
}

static void* exit_early(void* value) {
  pthread_exit((char*)value + 1);
  return NULL;
}

static void* count(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++detached_done;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void others(void) {
  pthread_t name;
  void* value;
  pthread_create(&name, NULL, exit_early, (void*)41);
  pthread_join(name, &value);
  printf("pthread_exit gives %ld\n", (long)value);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setscope(&attributes, PTHREAD_SCOPE_SYSTEM);
  pthread_create(&name, &attributes, count, NULL);
  pthread_attr_destroy(&attributes);
  pthread_create(&name, NULL, count, NULL);
  printf("detach: %d\n", pthread_detach(name));
  for (int done = 0; done < 2;) {
    sched_yield();
    pthread_mutex_lock(&mutex);
    done = detached_done;
    pthread_mutex_unlock(&mutex);
  }
  printf("both detached threads are done\n");
}

static void* deep(void* bytes) {
  size_t size = (size_t)bytes;
  char array[size];
  memset(array, 1, size);
  return (void*)(long)array[size / 2];
}

static void stacks(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t bytes = (size_t)32 << 20;
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_t name;
  void* value;
  pthread_create(&name, &attributes, deep, (void*)(bytes - (1 << 20)));
  pthread_join(name, &value);
  printf("a large stack: %ld\n", (long)value);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  first = pthread_self();
  own = 12;
  several(atoi(argv[1]));
  printf("counted %ld, thread-local %ld\n", in_data, own);
  one_after_another(atoi(argv[2]));
  others();
  stacks();
  return 0;
}
