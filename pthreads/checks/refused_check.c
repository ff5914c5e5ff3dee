// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that are refused by name, in the order of main(), and their errors.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };
static char variable[2 * PAGE] __attribute__((aligned(PAGE)));

static void told(const char* call, int failed, int error) {
  printf("%s: %s\n", call, failed ? strerror(error) : "done");
  fflush(stdout);
}
static void tell(const char* call, int failed) { told(call, failed, errno); }

static void make_timers(const char* where) {
  char call[64];
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD};
  snprintf(call, sizeof call, "timer_create of a thread, %s", where);
  tell(call, timer_create(CLOCK_REALTIME, &event, &timer) == -1);
  snprintf(call, sizeof call, "timer_create, %s", where);
  tell(call, timer_create(CLOCK_REALTIME, NULL, &timer) == -1);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGTERM;
  snprintf(call, sizeof call, "timer_create of SIGTERM, %s", where);
  tell(call, timer_create(CLOCK_REALTIME, &event, &timer) == -1);
  event.sigev_signo = SIGUSR1;
  snprintf(call, sizeof call, "timer_create of SIGUSR1, %s", where);
  tell(call, timer_create(CLOCK_REALTIME, &event, &timer) == -1);
}

static void* in_a_thread(void* unused) {
  char* const arguments[] = {"true", NULL};
  make_timers("in a thread");
  tell("execvp in a thread", execvp("true", arguments) == -1);
  return unused;
}

static void map(const char* file) {
  const int open_file = open(file, O_RDWR);
  tell("a shared file",
       mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open_file, 0) == MAP_FAILED);
  tell("a shared file to read",
       mmap(NULL, PAGE, PROT_READ, MAP_SHARED, open_file, 0) == MAP_FAILED);
  close(open_file);
  const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  variable[0] = 1;
  tell("over a variable", mmap(variable, PAGE, access, flags | MAP_FIXED, -1, 0) == MAP_FAILED);
  void* const elsewhere = (void*)0x10000000000;
  tell("elsewhere", mmap(elsewhere, PAGE, access, flags | MAP_FIXED, -1, 0) == MAP_FAILED);
  tell("where something is",
       mmap(variable, PAGE, access, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
  char* const mapped = mmap(NULL, 2 * PAGE, access, flags, -1, 0);
  tell("to another place",
       mremap(mapped, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mapped + PAGE) == MAP_FAILED);
  printf("the variable has %d\n", variable[0]);
}

int main(int argc, char** argv) {
  pthread_t name;
  pthread_mutexattr_t shared;
  if (argc < 2) return 2;
  tell("dlopen before", dlopen("libm.so.6", RTLD_NOW) == NULL);
  tell("setgid before", setgid(getgid()) != 0);
  tell("fork", fork() == -1);
  tell("_Fork", _Fork() == -1);
  tell("daemon", daemon(1, 1) == -1);
  tell("sem_open", sem_open("/of-tombolo", O_CREAT, 0600, 1) == SEM_FAILED);
  pthread_mutexattr_init(&shared);
  int error = pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  told("pthread_mutexattr_setpshared", error != 0, error);
  error = pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  told("pthread_setcanceltype", error != 0, error);
  make_timers("in main");
  pthread_create(&name, NULL, in_a_thread, NULL);
  pthread_join(name, NULL);
  tell("dlopen", dlopen("libm.so.6", RTLD_NOW) == NULL);
  printf("%s\n", dlerror());
  tell("setuid", setuid(getuid()) != 0);
  tell("setgid", setgid(getgid()) != 0);
  tell("setresuid", setresuid(-1, -1, -1) != 0);
  tell("initgroups", initgroups("root", 0) != 0);
  map(argv[1]);
  return 0;
}
