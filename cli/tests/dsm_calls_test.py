# SPDX-License-Identifier: Apache-2.0
"""The calls of tombolo/dsm.h one by one, with their mistakes, and the usage of the launcher."""

import signal
import subprocess

import pytest
from dsm_test import IN_ORDER, ON_MACHINES, TRANSPORTS, built, compile_c, run
from tombolo import dsm, libraries

__all__ = ["built", "compile_c"]  # fixtures

# The first two threads hand numbers over at a barrier of their own, and the last one takes no part.
PAIRS = r"""
#include <stdio.h>
#include <tombolo/dsm.h>

enum { rounds = 20 };

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), n = tombolo_dsm_threads();
  int* const sent = tombolo_dsm_malloc(3 * 4096);
  int* const counted = sent + 1024;
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create();
  tombolo_dsm_barrier_t pair = tombolo_dsm_barrier_create(2);
  tombolo_dsm_barrier_t all = tombolo_dsm_barrier_create(n);
  int sum = 0;
  for (int round = 1; me < 2 && round <= rounds; ++round) {
    if (me == 0) {
      sent[0] = round;
      tombolo_dsm_mutex_lock(mutex);
      counted[0] = round;
      tombolo_dsm_mutex_unlock(mutex);
    }
    tombolo_dsm_barrier_wait_at(pair);
    if (sent[0] != round || counted[0] != round) return 1;
    if (me == 1) sum += sent[0];
    tombolo_dsm_barrier_wait_at(pair);
  }
  sent[2048 + me] = 1;
  if (me == 1) sent[2048 + n] = sum;
  tombolo_dsm_barrier_wait_at(all);
  int threads = 0;
  for (unsigned i = 0; i < n; ++i) threads += sent[2048 + i];
  if (me == n - 1) printf("%d %d threads\n", sent[2048 + n], threads);
  tombolo_dsm_finalize();
  return 0;
}
"""


@pytest.mark.parametrize("how", [*TRANSPORTS, *ON_MACHINES, IN_ORDER], ids=lambda words: words[-1])
def test_some_of_the_threads_meet(compile_c, how):
    done = run("-n", 3, *how, "--memory", "4MiB", compile_c("pairs", PAIRS))
    assert (done.returncode, done.stdout) == (0, "210 3 threads\n"), done.stderr


# Blocks that are moved, conditions, tries and sums.
CALLS = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tombolo/dsm.h>

#define CHECK(holds)                                        \
  do {                                                      \
    if (!(holds)) return printf("line %d\n", __LINE__), 1; \
  } while (0)

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), n = tombolo_dsm_threads();
  // Moved blocks have the stores of all threads, and only as much as fits.
  char* text = tombolo_dsm_malloc(2 * 4096);
  char* const first = text;
  char* const next = tombolo_dsm_malloc(4096);
  text[me] = (char)('a' + me);
  if (me == 0) next[0] = 'n';
  text = tombolo_dsm_realloc(text, 3 * 4096);
  CHECK(text != first);
  for (unsigned i = 0; i < n; ++i) CHECK(text[i] == (char)('a' + i) && text[2 * 4096 + i] == 0);
  tombolo_dsm_barrier_wait();
  char* const beside = tombolo_dsm_malloc(64);
  CHECK(beside == first);  // the former place is free
  if (me == 0) beside[1] = 'x';
  tombolo_dsm_barrier_wait();
  char* const less = tombolo_dsm_realloc(text, 1);
  CHECK(less == beside + 64 && less[0] == 'a' && less[1] == 0);
  CHECK(beside[1] == 'x');
  errno = 0;
  CHECK(tombolo_dsm_malloc((size_t)1 << 40) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(tombolo_dsm_realloc(less, (size_t)1 << 40) == NULL && errno == ENOMEM);
  CHECK(less[0] == 'a');
  char* const fresh = tombolo_dsm_realloc(NULL, 10);
  CHECK(fresh != NULL && fresh != less);
  tombolo_dsm_free(NULL);
  tombolo_dsm_free(fresh);
  CHECK(tombolo_dsm_malloc(10) == fresh);

  CHECK(tombolo_dsm_sum_u64((uint64_t)1 << (60 + me)) == (((uint64_t)1 << n) - 1) << 60);
  CHECK(tombolo_dsm_sum(0.25) == 0.25 * n);
  CHECK(tombolo_dsm_min(-1.0 * me) == -1.0 * (n - 1) && tombolo_dsm_max(-1.0 * me) == 0);

  // The last thread is woken by thread 0 alone, then all others at once.
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create(), other = tombolo_dsm_mutex_create();
  tombolo_dsm_cond_t cond = tombolo_dsm_cond_create(), go = tombolo_dsm_cond_create();
  int* const state = tombolo_dsm_malloc(4096);
  if (me == 0) CHECK(tombolo_dsm_mutex_trylock(other) == 1);
  tombolo_dsm_sum(0);  // all have come here
  if (me != 0) CHECK(tombolo_dsm_mutex_trylock(other) == 0);
  tombolo_dsm_sum(0);
  if (me == 0) tombolo_dsm_mutex_unlock(other);
  if (me != 0) {
    tombolo_dsm_mutex_lock(mutex);
    ++state[0];
    tombolo_dsm_cond_signal(cond);
    while (state[1] == 0) tombolo_dsm_cond_wait(go, mutex);
    ++state[2];
    tombolo_dsm_mutex_unlock(mutex);
  } else {
    tombolo_dsm_mutex_lock(mutex);
    while (state[0] != (int)n - 1) tombolo_dsm_cond_wait(cond, mutex);
    state[1] = 1;
    tombolo_dsm_cond_broadcast(go);
    tombolo_dsm_mutex_unlock(mutex);
  }
  tombolo_dsm_barrier_wait();
  CHECK(state[2] == (int)n - 1);
  tombolo_dsm_barrier_wait();
  if (me == n - 1) printf("as it should be\n");
  tombolo_dsm_finalize();
  return 0;
}
"""


@pytest.mark.parametrize("how", TRANSPORTS, ids=lambda words: words[-1])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_calls_do_what_the_header_says(compile_c, how, threads):
    done = run("-n", threads, *how, "--memory", "4MiB", compile_c("calls", CALLS))
    assert (done.returncode, done.stdout) == (0, "as it should be\n"), done.stderr


MISTAKES = r"""
#include <string.h>
#include <tombolo/dsm.h>

int main(int argc, char** argv) {
  (void)argc;
  const char* const part = argv[1];
  char here[64];
  if (strcmp(part, "before") == 0) tombolo_dsm_malloc(8);
  tombolo_dsm_init();
  char* const block = tombolo_dsm_malloc(128);
  if (strcmp(part, "twice") == 0) tombolo_dsm_init();
  if (strcmp(part, "free") == 0) tombolo_dsm_free(here);
  if (strcmp(part, "inside") == 0) tombolo_dsm_realloc(block + 64, 8);
  for (int i = 0; strncmp(part, "mutexes", 7) == 0 && i < (part[7] == '+' ? 1025 : 1024); ++i)
    tombolo_dsm_mutex_create();
  for (int i = 0; strncmp(part, "conds", 5) == 0 && i < (part[5] == '+' ? 2049 : 2048); ++i)
    tombolo_dsm_cond_create();
  for (int i = 0; strncmp(part, "barriers", 8) == 0 && i < (part[8] == '+' ? 4097 : 4096); ++i)
    tombolo_dsm_barrier_create(1);
  tombolo_dsm_finalize();
  if (strcmp(part, "after") == 0) tombolo_dsm_thread();
  return 0;
}
"""


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("before", "tombolo_dsm_malloc: call it between tombolo_dsm_init and _finalize"),
        ("after", "tombolo_dsm_thread: call it between tombolo_dsm_init and _finalize"),
        ("twice", "tombolo_dsm_init: the program has begun before"),
        ("free", "tombolo_dsm_free: 0x"),
        ("inside", "tombolo_dsm_realloc: 0x200000000040 is not the address of a block"),
        ("mutexes+", "tombolo_dsm_mutex_create: all 1024 locks are taken"),
        ("conds+", "tombolo_dsm_cond_create: all 4096 words are taken"),
        ("barriers+", "tombolo_dsm_barrier_create: all 4096 words are taken"),
        ("barriers", None),
        ("mutexes", None),
        ("conds", None),
    ],
)
def test_mistakes_of_calls_are_told_by_their_names(compile_c, part, told):
    done = run("-n", 1, "--memory", "4MiB", compile_c("mistakes", MISTAKES), part)
    assert done.returncode == (0 if told is None else 128 + signal.SIGABRT), done.stderr
    assert told is None or told in done.stderr


@pytest.mark.parametrize("words", [[], ["2"], ["0", "true"], ["x", "true"], ["4097", "true"]])
def test_the_launcher_tells_its_usage(words):
    launcher = libraries.need_program(dsm.LAUNCHER)
    done = subprocess.run([launcher, *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert done.stderr == "usage: tombolo-dsm N PROGRAM [ARGUMENT]...   (N from 1 to 4096)\n"


BARRIERS = r"""
#include <stdlib.h>
#include <tombolo/dsm.h>

int main(int argc, char** argv) {
  (void)argc;
  tombolo_dsm_init();
  const int threads = atoi(argv[1]);
  tombolo_dsm_barrier_t none = {0, 0};
  if (threads < 0) tombolo_dsm_barrier_wait_at(none);
  for (int i = 0; i < 5000; ++i) tombolo_dsm_barrier_create((unsigned)threads);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("threads", "told"),
    [
        ("0", "tombolo_dsm_barrier_create: a barrier of 0 threads; the program has 2"),
        ("3", "tombolo_dsm_barrier_create: a barrier of 3 threads; the program has 2"),
        ("-1", "tombolo_dsm_barrier_wait_at: tombolo_dsm_barrier_create has not made this barrier"),
        ("2", "tombolo_dsm_barrier_create: all 4096 words are taken"),
    ],
)
def test_barriers_that_cannot_be_are_mistakes(compile_c, threads, told):
    done = run("-n", 2, compile_c("barriers", BARRIERS), threads)
    assert done.returncode == 128 + signal.SIGABRT
    assert told in done.stderr
