// SPDX-License-Identifier: Apache-2.0
// Purpose: the ends of a threaded program, named by the argument, and the output of its threads.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static const char* how;
static int file;

static int is(const char* name) { return strcmp(how, name) == 0; }

static void handler(void) { printf("at exit\n"); }

static int overflow(int depth) {
  volatile char page[4096];
  page[0] = (char)depth;
  return overflow(depth + 1) + page[0];
}

static void* end(void* unused) {
  (void)unused;
  if (is("exit")) exit(7);
  if (is("_exit")) _exit(8);
  if (is("abort")) abort();
  if (is("segv")) *(volatile int*)16 = 1;
  if (is("overflow")) return (void*)(long)overflow(0);
  if (is("killed")) raise(SIGKILL);
  if (is("twice")) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  }
  return NULL;
}

// The thread ends the program while this one takes no signal.
static void block_all(const char* what) {
  pthread_t name;
  sigset_t all;
  int pipes[2], number;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  if (pipe(pipes) != 0) return;
  how = "exit";
  pthread_create(&name, NULL, end, NULL);
  if (strcmp(what, "sigwait") == 0)
    while (sigwait(&all, &number) == 0) printf("signal %d\n", number);
  if (strcmp(what, "a read") == 0) read(pipes[0], &number, sizeof number);
  for (volatile long i = 0;; ++i) {
  }
}

// A thread waits for a line of a stream when this one ends the program.
static void* wait_for_line(void* stream) {
  char* line = NULL;
  size_t bytes = 0;
  getline(&line, &bytes, stream);
  return NULL;
}
static void end_beside_a_line(void) {
  pthread_t name;
  int pipes[2];
  if (pipe(pipes) != 0) return;
  pthread_create(&name, NULL, wait_for_line, fdopen(pipes[0], "r"));
  usleep(200000);
  exit(9);
}

static void* wait_for_ever(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&never, &mutex);
}

// Of another process, as the first one is refused threads.
static sem_t refused, asked;
static void* ask_for_more(void* unused) {
  pthread_t name;
  sem_wait(&refused);
  if (pthread_create(&name, NULL, wait_for_ever, NULL) != EAGAIN) exit(3);
  sem_post(&asked);
  return wait_for_ever(unused);
}

static void* last_of_all(void* unused) {
  (void)unused;
  usleep(50000);
  printf("the last thread\n");
  return NULL;
}

// ---- The first thread leaves with locks --------------------------------------------------------

static pthread_mutex_t robust;
static pthread_key_t key;
static int cleaned, destroyed;

static void destroy(void* value) { destroyed = *(int*)value; }

static void clean_up(void* value) {
  cleaned = *(int*)value;
  pthread_mutex_unlock(&mutex);
}

static void* take_over(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  printf("cleaned up: %d\n", cleaned);
  const int error = pthread_mutex_lock(&robust);
  printf("%s, destroyed: %d\n", strerror(error), destroyed);
  return NULL;
}

static void leave_holding(void) {
  static int four = 4, five = 5;
  pthread_t name;
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &kind);
  pthread_key_create(&key, destroy);
  pthread_setspecific(key, &five);
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&robust);
  pthread_create(&name, NULL, take_over, NULL);
  pthread_cleanup_push(clean_up, &four);
  pthread_exit(NULL);
  pthread_cleanup_pop(0);
}

static void* print(void* number) {
  for (int i = 0; i < 3; ++i) printf("thread %ld line %d\n", (long)number, i);
  return NULL;
}

static FILE* stream;

static void* print_to_file(void* number) {
  for (int i = 0; i < 200; ++i) {
    fprintf(stream, "thread %ld line %d\n", (long)number, i);
    if (i % 50 == 0) fflush(stream);
  }
  return NULL;
}

// Each line is one thread's, and all of it.
static long lines_read, sum;

static void* read_lines(void* number) {
  char* line = NULL;
  size_t room = 0;
  int found = 0;
  for (;;) {
    const int got = (long)number % 2 != 0 ? fscanf(stream, " line %d", &found) == 1
                                          : getline(&line, &room, stream) > 0;
    if (!got) break;
    if ((long)number % 2 == 0 && sscanf(line, " line %d", &found) != 1) continue;
    pthread_mutex_lock(&mutex);
    ++lines_read;
    sum += found;
    pthread_mutex_unlock(&mutex);
  }
  free(line);
  return NULL;
}

static void* put_lines(void* number) {
  for (int i = 0; i < 500; ++i) fprintf(stream, "line %ld\n", (long)number * 500 + i);
  return NULL;
}

static void* open_stream(void* path) { return fopen(path, "a"); }

static void count_lines(const char* path) {
  char line[100];
  int lines = 0, whole = 0, thread, number;
  FILE* file = fopen(path, "r");
  while (fgets(line, sizeof line, file) != NULL) {
    ++lines;
    whole += sscanf(line, "thread %d line %d\n", &thread, &number) == 2;
  }
  printf("%d lines, %d of them whole\n", lines, whole);
  fclose(file);
}

static int turn;
static pthread_cond_t next_turn = PTHREAD_COND_INITIALIZER;

static void* print_in_turn(void* number) {
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % 4 != (long)number) pthread_cond_wait(&next_turn, &mutex);
    printf("turn %d of thread %ld\n", turn++, (long)number);
    pthread_cond_broadcast(&next_turn);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void run(int threads, void* (*work)(void*)) {
  pthread_t names[64];
  for (long i = 0; i < threads; ++i) pthread_create(&names[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(names[i], NULL);
}

static void* open_file(void* path) {
  file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  char* text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  strcpy(text, "of a thread\n");
  if (chdir("/") != 0) return NULL;
  return text;
}

static void* close_file(void* unused) {
  (void)unused;
  close(file);
  return NULL;
}

static int files(char* path) {
  pthread_t name;
  void* text;
  pthread_create(&name, NULL, open_file, path);
  pthread_join(name, &text);
  char place[64], back[64] = "";
  if (write(file, text, strlen(text)) < 0) printf("write: %s\n", strerror(errno));
  char* mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  if (pread(file, back, sizeof back - 1, 0) < 0) printf("pread: %s\n", strerror(errno));
  printf("%s%sin %s\n", back, mapped, getcwd(place, sizeof place));
  munmap(mapped, 4096);
  munmap(text, 4096);
  run(1, close_file);
  printf("closed %d\n", write(file, "x", 1) < 0 && errno == EBADF);
  return 0;
}

static void* children(void* unused) {
  (void)unused;
  FILE* command = popen("echo from a child", "r");
  char line[64] = "";
  if (fgets(line, sizeof line, command) == NULL) printf("popen: %s\n", strerror(errno));
  printf("%sstatus %d, system %d\n", line, pclose(command), WEXITSTATUS(system("exit 3")));
  return NULL;
}

static volatile sig_atomic_t handled;
static void on_signal(int number) { handled = number; }

static void* wait_for_signal(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  turn = 1;
  pthread_cond_signal(&next_turn);
  pthread_mutex_unlock(&mutex);
  while (!handled) usleep(100);
  return (void*)(long)handled;
}

static int signals(void) {
  pthread_t name;
  void* number;
  signal(SIGUSR1, on_signal);
  pthread_create(&name, NULL, wait_for_signal, NULL);
  pthread_mutex_lock(&mutex);
  while (!turn) pthread_cond_wait(&next_turn, &mutex);
  pthread_mutex_unlock(&mutex);
  printf("kill %d\n", pthread_kill(name, SIGUSR1));
  pthread_join(name, &number);
  printf("signal %d, pid %d\n", (long)number == SIGUSR1, getpid() > 0);
  return 0;
}

// ---- Signals of terminals and timers ------------------------------------------------------------

static const int ordinary[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGALRM, SIGWINCH};
enum { KINDS = sizeof ordinary / sizeof *ordinary };
static volatile sig_atomic_t taken[65];
static int pipes[2];

static void take(int number) { ++taken[number]; }

static void next(void) {
  pthread_mutex_lock(&mutex);
  ++turn;
  pthread_cond_broadcast(&next_turn);
  pthread_mutex_unlock(&mutex);
}

static void wait_for_turn(int wanted) {
  pthread_mutex_lock(&mutex);
  while (turn < wanted) pthread_cond_wait(&next_turn, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void* have_ordinary(void* unused) {
  (void)unused;
  char letter;
  int number = 0;
  sigset_t hangup, interrupt, old;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  for (int i = 0; i < KINDS; ++i) {
    const int ended = read(pipes[0], &letter, 1) < 0 && errno == EINTR;
    printf("%s ends a read: %d\n", strsignal(ordinary[i]), ended && taken[ordinary[i]] > 0);
    next();
    wait_for_turn(2 * i + 2);
  }
  for (int i = 0; i < KINDS; ++i) {
    taken[ordinary[i]] = 0;
    const int error = i % 2 == 0 ? raise(ordinary[i]) : pthread_kill(pthread_self(), ordinary[i]);
    printf("by itself: %d, %d\n", error, taken[ordinary[i]]);
  }
  taken[SIGHUP] = 0;
  pthread_sigmask(SIG_BLOCK, &hangup, &old);
  printf("blocked before: %d\n", sigismember(&old, SIGTERM) + sigismember(&old, SIGHUP));
  next();
  wait_for_turn(2 * KINDS + 2);
  printf("held back: %d\n", taken[SIGHUP]);
  pthread_sigmask(SIG_UNBLOCK, &hangup, &old);
  printf("let through: %d, blocked before: %d\n", taken[SIGHUP],
         sigismember(&old, SIGTERM) + sigismember(&old, SIGHUP));
  pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
  taken[SIGINT] = 0;
  next();
  sigwait(&interrupt, &number);
  pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
  printf("waited for %d, handled %d\n", number, taken[SIGINT]);
  taken[SIGALRM] = 0;
  const struct itimerval soon = {{0, 0}, {0, 2000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  while (taken[SIGALRM] == 0) usleep(1000);
  printf("its own timer: %d, left of an alarm: %u\n", taken[SIGALRM], (alarm(100), alarm(0)));
  const struct itimerval late = {{0, 800000}, {100, 0}};
  struct itimerval left;
  setitimer(ITIMER_REAL, &late, NULL);
  printf("read: %d, ", getitimer(ITIMER_REAL, &left));
  printf("%d, %ld, ", left.it_value.tv_sec > 0, left.it_interval.tv_usec);
  printf("left of an ualarm: %d, ", ualarm(2000, 0) > 2000);
  while (taken[SIGALRM] == 1) usleep(1000);
  printf("its end: %d\n", taken[SIGALRM]);
  return NULL;
}

// ---- Another program in its place ---------------------------------------------------------------

static int become_another(void) {
  pthread_t name;
  char pid[16];
  for (int i = 0; i < 3; ++i) pthread_create(&name, NULL, wait_for_ever, NULL);
  snprintf(pid, sizeof pid, "%d", getpid());
  setenv("OF_THE_PROGRAM", "its environment", 1);
  execl("/bin/sh", "sh", "-c", "test $$ = $1 && echo one process, $OF_THE_PROGRAM; exit 4", "sh",
        pid, NULL);
  return 1;
}

static int stay(void) {
  pthread_t name;
  char* const arguments[] = {"nothing", NULL};
  pthread_create(&name, NULL, last_of_all, NULL);
  printf("%d ", execv("/no/such/file", arguments));
  printf("%s, ", strerror(errno));
  printf("%d ", execvp("no-such-program-here", arguments));
  printf("%s, ", strerror(errno));
  printf("%d ", execv("/etc", arguments));
  printf("%s\n", strerror(errno));
  fflush(stdout);
  pthread_join(name, NULL);
  return 0;
}

static int ordinary_signals(void) {
  pthread_t name;
  struct sigaction action = {.sa_handler = take};
  sigset_t alarm_only;
  if (pipe(pipes) != 0) return 1;
  for (int i = 0; i < KINDS; ++i) sigaction(ordinary[i], &action, NULL);
  pthread_create(&name, NULL, have_ordinary, NULL);
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
  for (int i = 0; i < KINDS; ++i) {
    // One that comes before the read ends nothing.
    for (int done = 0; !done; usleep(1000)) {
      pthread_mutex_lock(&mutex);
      done = turn > 2 * i;
      pthread_mutex_unlock(&mutex);
      if (!done) pthread_kill(name, ordinary[i]);
    }
    next();
  }
  wait_for_turn(2 * KINDS + 1);
  pthread_kill(name, SIGHUP);
  next();
  wait_for_turn(2 * KINDS + 3);
  pthread_kill(name, SIGINT);
  pthread_join(name, NULL);
  return 0;
}

static volatile sig_atomic_t jumps;
static sigjmp_buf back;
static int told[2];

// In a handler, or where one may come.
static void tell(void) {
  if (write(told[1], "t", 1) != 1) abort();
}

static void hear(void) {
  char letter;
  while (read(told[0], &letter, 1) != 1) {
  }
}

static void jump(int number) {
  (void)number;
  ++jumps;
  siglongjmp(back, 1);
}

// Held back in a read, left by a jump, and another thread's.
static void* hold_back(void* unused) {
  (void)unused;
  char letter = 0;
  sigset_t hangup, alarm_only;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &hangup, NULL);
  tell();
  const long got = read(pipes[0], &letter, 1);
  printf("read %ld %c, handled %d\n", got, letter, taken[SIGHUP]);
  pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
  printf("handled %d\n", taken[SIGHUP]);
  for (volatile int times = 0; times < 3; ++times)
    if (sigsetjmp(back, 1) == 0) {
      tell();
      while (jumps == times) {
      }
    }
  printf("jumps: %d\n", jumps);
  fflush(stdout);
  pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
  const struct itimerval soon = {{0, 0}, {0, 2000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  while (read(pipes[0], &letter, 1) < 0) {
  }
  return NULL;
}

static int signals_held_back(void) {
  pthread_t name;
  struct sigaction action = {.sa_handler = take};
  if (pipe(pipes) != 0 || pipe(told) != 0) return 1;
  sigaction(SIGHUP, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = jump;
  sigaction(SIGTERM, &action, NULL);
  pthread_create(&name, NULL, hold_back, NULL);
  hear();
  usleep(20000);
  pthread_kill(name, SIGHUP);
  usleep(20000);
  if (write(pipes[1], "x", 1) != 1) return 1;
  for (int times = 0; times < 3; ++times) {
    hear();
    pthread_kill(name, SIGTERM);
  }
  while (taken[SIGALRM] == 0) usleep(100);
  printf("the first thread has the alarm: %d\n", taken[SIGALRM]);
  fflush(stdout);
  if (write(pipes[1], "y", 1) != 1) return 1;
  pthread_join(name, NULL);
  return 0;
}

// ---- Calls in a handler -------------------------------------------------------------------------

enum { POSTS = 60 };
static sem_t posts;
static int enough;

static void post(int number) {
  const int error = errno;
  static char letter;
  letter = (char)number;
  if (write(told[1], &letter, 1) == 1) sem_post(&posts);
  errno = error;
}

// The signals come wherever it is in a call.
static void* use_calls(void* unused) {
  for (int ends = 0; !ends;) {
    pthread_mutex_lock(&mutex);
    ends = enough;
    pthread_mutex_unlock(&mutex);
    sem_post(&posts);
    sem_wait(&posts);
  }
  return unused;
}

static int calls_in_handlers(void) {
  pthread_t name;
  int letters = 0;
  if (pipe(told) != 0 || sem_init(&posts, 0, 0) != 0) return 1;
  signal(SIGUSR1, post);
  pthread_create(&name, NULL, use_calls, NULL);
  for (int i = 0; i < POSTS; ++i) {
    char letter = 0;
    pthread_kill(name, SIGUSR1);
    while (read(told[0], &letter, 1) != 1) {
    }
    letters += letter == SIGUSR1;
    sem_wait(&posts);
  }
  pthread_mutex_lock(&mutex);
  enough = 1;
  pthread_mutex_unlock(&mutex);
  pthread_join(name, NULL);
  printf("%d letters\n", letters);
  return 0;
}

// Its signal comes before it has begun.
static __thread volatile sig_atomic_t of_this_thread;
static void take_alone(int number) { of_this_thread = number; }

static void* wait_for_taken(void* unused) {
  while (of_this_thread == 0) usleep(1000);
  return unused;
}

static int signals_at_the_start(void) {
  enum { THREADS = 12 };
  pthread_t names[THREADS];
  signal(SIGTERM, take_alone);
  for (int i = 0; i < THREADS; ++i) {
    pthread_create(&names[i], NULL, wait_for_taken, NULL);
    pthread_kill(names[i], SIGTERM);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(names[i], NULL);
  printf("all have theirs\n");
  return 0;
}

static void* pid_of_thread(void* unused) {
  (void)unused;
  return (void*)(long)getpid();
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  how = argv[1];
  atexit(handler);
  printf("before\n");
  fflush(stdout);
  pthread_t name;
  if (is("full heap")) {
    if (malloc((size_t)64 << 20) != NULL) printf("more than there is\n");
    while (malloc(1000) != NULL) {
    }
    printf("%s\nthe program goes on\n", strerror(errno));
    return 0;
  }
  if (is("lines")) {
    run(8, print);
    return 0;
  }
  if (is("turns")) {
    run(4, print_in_turn);
    return 0;
  }
  if (is("files")) return files(argv[2]);
  if (is("streams")) {
    stream = fopen(argv[2], "w");
    run(8, print_to_file);
    fclose(stream);
    count_lines(argv[2]);
    void* opened;
    pthread_create(&name, NULL, open_stream, argv[2]);
    pthread_join(name, &opened);
    stream = opened;
    run(4, print_to_file);
    fprintf(stream, "not flushed\n");
    return 0;
  }
  if (is("one stream")) {
    stream = tmpfile();
    run(4, put_lines);
    rewind(stream);
    run(4, read_lines);
    printf("%ld lines, sum %ld, end %d\n", lines_read, sum, feof(stream) != 0);
    return 0;
  }
  if (is("count")) {
    count_lines(argv[2]);
    return 0;
  }
  if (is("signals")) return signals();
  if (is("ordinary signals")) return ordinary_signals();
  if (is("children")) {
    children(NULL);
    run(1, children);
    printf("no other children: %d\n", wait(NULL) < 0 && errno == ECHILD);
    return 0;
  }
  if (is("pids")) {
    void* pid;
    pthread_create(&name, NULL, pid_of_thread, NULL);
    pthread_join(name, &pid);
    printf("one process: %d\n", (long)pid == getpid());
    return 0;
  }
  if (is("main leaves")) {
    pthread_create(&name, NULL, last_of_all, NULL);
    pthread_exit(NULL);
  }
  if (is("main leaves with locks")) leave_holding();
  if (is("signals held back")) return signals_held_back();
  if (is("calls in handlers")) return calls_in_handlers();
  if (is("signals at the start")) return signals_at_the_start();
  if (is("exec")) return become_another();
  if (is("exec of nothing")) return stay();
  if (is("terminated")) {
    pthread_create(&name, NULL, wait_for_ever, NULL);
    pthread_kill(name, SIGTERM);
    pthread_join(name, NULL);
  }
  if (is("never joined") || is("main killed")) {
    for (int i = 0; i < 3; ++i) pthread_create(&name, NULL, wait_for_ever, NULL);
    if (is("main killed")) raise(SIGKILL);
    return 5;
  }
  if (is("too many")) {
    int error, made = 0;
    sem_init(&refused, 0, 0);
    sem_init(&asked, 0, 0);
    pthread_create(&name, NULL, ask_for_more, NULL);
    for (made = 1; (error = pthread_create(&name, NULL, wait_for_ever, NULL)) == 0;) ++made;
    sem_post(&refused);
    sem_wait(&asked);
    printf("%d threads, then %s\n", made, strerror(error));
    return 0;
  }
  if (strncmp(how, "exit beside ", 12) == 0) block_all(how + 12);
  if (is("main ends beside a line")) end_beside_a_line();
  if (is("busy")) {
    how = "exit";
    pthread_create(&name, NULL, end, NULL);
    for (volatile long i = 0;; ++i) free(malloc((size_t)i % 1000));
  }
  pthread_create(&name, NULL, end, NULL);
  wait_for_ever(NULL);
}
