// SPDX-License-Identifier: Apache-2.0
// Purpose: the kernel at the program's memory: system calls whose buffers another thread has stored
// to last, or no thread yet; handlers of signals that store to variables in the middle of locks;
// programs that are started with texts of other threads. Arguments: threads, rounds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 40000 };
extern char** environ;

static int threads, rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2], ends[2];
static char sent[BYTES], received[BYTES], parts[3][BYTES / 4];
static struct stat shape;
static char* texts[4];
static long turn, wrong, alarms, held;
static sigset_t alarm_only;

static void fill(char* to, int bytes, long seed) {
  for (int i = 0; i < bytes; ++i) to[i] = (char)(seed + i * 7);
}
static void check(const char* from, int bytes, long seed) {
  for (int i = 0; i < bytes; ++i) wrong += from[i] != (char)(seed + i * 7);
}

// Buffers that the thread before has stored to, in pages that this one has not.
static void transfer(long seed) {
  check(sent, BYTES, seed);
  long written = 0, read_back = 0;
  while (written < BYTES) written += write(pipes[1], sent + written, (size_t)(BYTES - written));
  while (read_back < BYTES)
    read_back += read(pipes[0], received + read_back, (size_t)(BYTES - read_back));
  check(received, BYTES, seed);

  struct iovec three[3];
  for (int i = 0; i < 3; ++i) three[i] = (struct iovec){parts[i], sizeof parts[i]};
  struct msghdr message = {.msg_iov = three, .msg_iovlen = 3};
  for (int i = 0; i < 3; ++i) fill(parts[i], BYTES / 4, seed + i);
  wrong += sendmsg(ends[1], &message, 0) != 3 * BYTES / 4;
  memset(parts, 0, sizeof parts);
  wrong += recvmsg(ends[0], &message, MSG_WAITALL) != 3 * BYTES / 4;
  for (int i = 0; i < 3; ++i) check(parts[i], BYTES / 4, seed + i);
  three[0].iov_base = sent;  // the same header and array, with other buffers
  wrong += sendmsg(ends[1], &message, 0) != 3 * BYTES / 4;
  three[0].iov_base = received;
  memset(received, 0, BYTES / 4);
  wrong += recvmsg(ends[0], &message, MSG_WAITALL) != 3 * BYTES / 4;
  check(received, BYTES / 4, seed);
  wrong += message.msg_iov != three || message.msg_iovlen != 3;
  char name[16], control[64];  // the lengths that the kernel tells: none was sent
  struct msghdr told = {
      .msg_name = name, .msg_namelen = sizeof name, .msg_iov = three, .msg_iovlen = 1};
  told.msg_control = control;
  told.msg_controllen = sizeof control;
  told.msg_flags = -1;
  wrong += sendmsg(ends[1], &message, 0) != 3 * BYTES / 4;
  wrong += recvmsg(ends[0], &told, MSG_WAITALL) != BYTES / 4;
  wrong += told.msg_namelen != 0 || told.msg_controllen != 0 || told.msg_flags != 0;
  for (int i = 1; i < 3; ++i) wrong += read(ends[0], received, BYTES / 4) != BYTES / 4;

  struct pollfd ready = {.fd = pipes[1], .events = POLLOUT};
  wrong += poll(&ready, 1, -1) != 1 || (ready.revents & POLLOUT) == 0;
  wrong += stat("/", &shape) != 0 || !S_ISDIR(shape.st_mode);
  wrong += open(texts[3], O_RDONLY) >= 0;
  fill(sent, BYTES, seed + 1);
}

static void start_program(void) {
  pid_t child = 0;
  int status = -1;
  wrong += posix_spawnp(&child, texts[0], NULL, NULL, texts, environ) != 0;
  wrong += waitpid(child, &status, 0) != child || status != 0;
}

static void* take_turns(void* argument) {
  const long self = (long)argument;
  for (int round = 0; round < rounds;) {
    pthread_mutex_lock(&mutex);
    if (turn % threads == self) {
      transfer(turn);
      if (round == 0) start_program();
      free(texts[2]);
      texts[2] = strdup("x");
      ++turn;
      ++round;
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

// The head of a mapping is unmapped, its tail mapped anew, by another thread than the one that
// stores to the rest.
enum { PAGES = 8 };
static unsigned char* mapped;
static long page;

static void* trim(void* unused) {
  (void)unused;
  wrong += munmap(mapped, 5 * page) != 0;
  unsigned char* const tail = mapped + 7 * page;
  wrong += mmap(tail, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != tail;
  for (long i = 0; i < page; ++i) wrong += tail[i] != 0;
  memset(tail, 9, page);
  return NULL;
}

static void map_parts(void) {
  pthread_t name;
  page = sysconf(_SC_PAGESIZE);
  mapped = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(mapped, PAGES * page, PROT_READ | PROT_WRITE);
  memset(mapped, 7, PAGES * page);
  pthread_create(&name, NULL, trim, NULL);
  pthread_join(name, NULL);
  unsigned char* others[4];
  for (int i = 0; i < 4; ++i) {
    others[i] =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(others[i], i, PAGES * page);
  }
  for (long i = 0; i < 3 * page; ++i) wrong += mapped[5 * page + i] != (i < 2 * page ? 7 : 9);
  wrong += mremap(others[0], PAGES * page, page, 0) != others[0];
  for (int i = 0; i < 4; ++i) munmap(others[i], i == 0 ? page : PAGES * page);
  munmap(mapped + 5 * page, 3 * page);
}

static void on_alarm(int signal) {
  (void)signal;
  ++alarms;
}

// The timer is the first thread's. Under Pthreads the kernel may choose any thread that takes the
// signal, whose calls then end with EINTR: the others were created with the signal blocked.
static void be_interrupted(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
  while (alarms < rounds * 10L) {
    pthread_mutex_lock(&mutex);
    ++held;
    pthread_mutex_unlock(&mutex);
  }
  setitimer(ITIMER_REAL, &never, NULL);
}

// A handler makes calls with buffers of its own while one that is restarted waits.
enum { RUNS = 20 };
static int input[2], output[2], runs;
static char lines[8] = "a line!", words[2][4];

static void write_meanwhile(int signal) {
  (void)signal;
  const struct iovec two[2] = {{lines, 4}, {lines + 4, 4}};
  wrong += writev(output[1], two, 2) != 8;
  if (++runs == RUNS) wrong += write(input[1], "abcdefgh", 8) != 8;
}

static void read_meanwhile(void) {
  struct sigaction action = {.sa_handler = write_meanwhile, .sa_flags = SA_RESTART};
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  const struct iovec two[2] = {{words[0], 4}, {words[1], 4}};
  wrong += pipe(input) != 0 || pipe(output) != 0;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  wrong += readv(input[0], two, 2) != 8;
  setitimer(ITIMER_REAL, &never, NULL);
  wrong += memcmp(words, "abcdefgh", 8) != 0 || memcmp(lines, "a line!", 8) != 0;
}

int main(int argc, char** argv) {
  threads = argc > 1 ? atoi(argv[1]) : 3;
  rounds = argc > 2 ? atoi(argv[2]) : 5;
  wrong += pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0;
  fcntl(pipes[1], F_SETPIPE_SZ, 1 << 16);
  texts[0] = strdup("true");
  texts[1] = strdup("text of the first thread");
  texts[2] = strdup("y");
  texts[3] = NULL;
  fill(sent, BYTES, 0);
  pthread_t names[64];
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
  for (long i = 0; i < threads; ++i) pthread_create(&names[i], NULL, take_turns, (void*)i);
  be_interrupted();
  for (int i = 0; i < threads; ++i) pthread_join(names[i], NULL);
  map_parts();
  read_meanwhile();
  printf("%ld turns, %ld wrong, interrupted: %d\n", turn, wrong, alarms >= rounds && held > 0);
  return wrong != 0;
}
