// SPDX-License-Identifier: Apache-2.0
// Purpose: threads are cancelled while they sleep in the kernel, before, and where they have
// forbidden it; signals interrupt such calls as before. Arguments: none of interest, rounds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 1000

static int line[2];   // nothing is written to it
static int full[2];   // nothing fits
static int pair[2];   // of sockets
static int listener;  // no connection comes
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int step, cleaned;
static const char* how;

static int is(const char* name) { return strcmp(how, name) == 0; }

static void reach(int number) {
  pthread_mutex_lock(&mutex);
  step = number;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static void wait_for(int number) {
  pthread_mutex_lock(&mutex);
  while (step < number) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void clean(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++cleaned;
  pthread_mutex_unlock(&mutex);
}

static void sleep_in_the_kernel(void) {
  char letter[2] = "x";
  struct timespec time = {LONG_S, 0};
  struct timeval timeval = {LONG_S, 0};
  struct pollfd file = {line[0], POLLIN, 0};
  struct epoll_event event = {.events = EPOLLIN};
  struct msghdr message = {0};
  sigset_t set;
  fd_set files;
  FD_ZERO(&files);
  FD_SET(line[0], &files);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  long result = 0;
  if (is("sleep")) result = sleep(LONG_S);
  if (is("usleep")) result = usleep(900000000);
  if (is("nanosleep")) result = nanosleep(&time, NULL);
  if (is("clock_nanosleep")) result = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
  if (is("pause")) result = pause();
  if (is("sigwait")) result = sigwait(&set, &cleaned);
  if (is("sigtimedwait")) result = sigtimedwait(&set, NULL, &time);
  if (is("poll")) result = poll(&file, 1, -1);
  if (is("ppoll")) result = ppoll(&file, 1, NULL, NULL);
  if (is("select")) result = select(line[0] + 1, &files, NULL, NULL, &timeval);
  if (is("pselect")) result = pselect(line[0] + 1, &files, NULL, NULL, NULL, NULL);
  if (is("epoll_wait")) {
    const int group = epoll_create1(0);
    epoll_ctl(group, EPOLL_CTL_ADD, line[0], &event);
    result = epoll_wait(group, &event, 1, -1);
  }
  if (is("read")) result = read(line[0], letter, 1);
  if (is("write")) result = write(full[1], letter, 1);
  if (is("recv")) result = recv(pair[0], letter, 1, 0);
  if (is("recvmsg")) result = recvmsg(pair[0], &message, 0);
  if (is("accept")) result = accept(listener, NULL, NULL);
  printf("%s returned %ld\n", how, result);
}

// ---- While it sleeps, and before ----------------------------------------------------------------

static void* sleeper(void* waits) {
  pthread_cleanup_push(clean, NULL);
  reach(1);
  if (waits != NULL) {
    // Not a cancellation point: the call that follows is the first one.
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    wait_for(2);
    pthread_setcancelstate(state, NULL);
  }
  sleep_in_the_kernel();
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancel_sleeper(int before) {
  pthread_t thread;
  void* value;
  step = cleaned = 0;
  pthread_create(&thread, NULL, sleeper, before ? &step : NULL);
  wait_for(1);
  if (!before) usleep(2000);  // so that it sleeps, mostly
  const int error = pthread_cancel(thread);
  if (before) reach(2);
  pthread_join(thread, &value);
  printf("%s %s: %d, cancelled %d, cleaned %d\n", how, before ? "before" : "meanwhile", error,
         value == PTHREAD_CANCELED, cleaned);
}

// ---- Where it is forbidden ----------------------------------------------------------------------

static void* stubborn(void* unused) {
  (void)unused;
  char letter = 0;
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  reach(1);
  wait_for(2);  // cancelled by now
  const long got = read(pair[0], &letter, 1);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  usleep(20000);
  clock_gettime(CLOCK_MONOTONIC, &end);
  const long us = (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000;
  printf("forbidden: read %ld %c, slept %d\n", got, letter, us >= 20000);
  pthread_setcancelstate(state, NULL);
  pthread_testcancel();
  return NULL;
}

static void cancel_stubborn(void) {
  pthread_t thread;
  void* value;
  step = 0;
  pthread_create(&thread, NULL, stubborn, NULL);
  wait_for(1);
  pthread_cancel(thread);
  reach(2);
  usleep(5000);
  if (write(pair[1], "y", 1) != 1) printf("write: %s\n", strerror(errno));
  pthread_join(thread, &value);
  printf("then cancelled %d\n", value == PTHREAD_CANCELED);
}

// ---- Signals ------------------------------------------------------------------------------------

static void on_signal(int number) { (void)number; }

static void* interrupted(void* unused) {
  (void)unused;
  char letter;
  reach(1);
  const long got = read(line[0], &letter, 1);
  printf("interrupted: %ld, EINTR %d\n", got, errno == EINTR);
  return NULL;
}

static void interrupt(void) {
  pthread_t thread;
  step = 0;
  pthread_create(&thread, NULL, interrupted, NULL);
  wait_for(1);
  struct timespec soon = {0, 5000000};
  do {
    pthread_kill(thread, SIGUSR1);
    nanosleep(&soon, NULL);
  } while (pthread_tryjoin_np(thread, NULL) == EBUSY);
}

static void* counter(void* unused) {
  (void)unused;
  struct timespec time = {0, 1000};
  for (int i = 0; i < 100; ++i)
    if (nanosleep(&time, NULL) != 0) printf("nanosleep: %s\n", strerror(errno));
  return NULL;
}

int main(int argc, char** argv) {
  static const char* const calls[] = {
      "sleep",        "usleep", "nanosleep", "clock_nanosleep", "pause",   "sigwait",
      "sigtimedwait", "poll",   "ppoll",     "select",          "pselect", "epoll_wait",
      "read",         "write",  "recv",      "recvmsg",         "accept"};
  struct sigaction action = {.sa_handler = on_signal};
  if (argc != 3) return 2;
  sigaction(SIGUSR1, &action, NULL);
  if (pipe(line) != 0 || pipe2(full, O_NONBLOCK) != 0) return 3;
  while (write(full[1], calls, sizeof calls) > 0) {
  }
  fcntl(full[1], F_SETFL, 0);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t));
  listen(listener, 1);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    how = calls[i];
    cancel_sleeper(0);
    cancel_sleeper(1);
  }
  how = "read";
  for (int i = 0; i < atoi(argv[2]); ++i) cancel_sleeper(i % 2);
  cancel_stubborn();
  interrupt();
  // A thread that runs where another one was cancelled.
  pthread_t thread;
  pthread_create(&thread, NULL, counter, NULL);
  pthread_join(thread, NULL);
  return 0;
}
