# SPDX-License-Identifier: Apache-2.0
"""Threads that a program of tombolo/dsm.h creates, and the calls that one thread alone may make then (003
tables 5.2 to 5.4)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import dsm, libraries
from tombolo.errors import UserError

COMMAND = [sys.executable, "-P", str(Path(dsm.__file__).parent / "__main__.py")]
HOW = [
    ["--transport", "map"],
    *(["--transport", "window", "--machine", name] for name in ("coherent", "flushed", "stale")),
    ["--transport", "window", "--servers", "2"],
    ["--transport", "window", "--protocol", "sequential"],
]

# Numbers go by the list to the first thread, which frees the blocks of others.
LIST = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tombolo/dsm.h>

struct node {
  struct node* next;
  uint64_t value;
};
struct shared {
  tombolo_dsm_mutex_t mutex;
  tombolo_dsm_cond_t cond;
  tombolo_dsm_barrier_t all;
  tombolo_dsm_redvar_t sum, most, bits;
  tombolo_dsm_key_t key;
  struct node* list;
  uint64_t pushed, ended;
};

static void add_end(void* shared) {
  struct shared* const s = shared;
  tombolo_dsm_mutex_lock(s->mutex);
  ++s->ended;
  tombolo_dsm_mutex_unlock(s->mutex);
}

static void* push(void* shared) {
  struct shared* const s = shared;
  const uint64_t me = tombolo_dsm_thread();
  if (tombolo_dsm_getspecific(s->key) != NULL) return "a value of another thread";
  tombolo_dsm_setspecific(s->key, s);
  for (uint64_t i = 0; i < 50; ++i) {
    struct node* const node = tombolo_dsm_malloc(sizeof *node);
    tombolo_dsm_mutex_lock(s->mutex);
    *node = (struct node){s->list, me * 1000 + i};
    s->list = node;
    ++s->pushed;
    tombolo_dsm_cond_signal(s->cond);
    tombolo_dsm_mutex_unlock(s->mutex);
  }
  tombolo_dsm_barrier_wait_at(s->all);
  int32_t one = -1;
  tombolo_dsm_reduce(s->sum, TOMBOLO_DSM_INT32, &one, &one);
  double mine = 0.5 * (double)me, most;
  tombolo_dsm_reduce(s->most, TOMBOLO_DSM_DOUBLE, &mine, &most);
  uint64_t bit = (uint64_t)1 << me;
  tombolo_dsm_reduce(s->bits, TOMBOLO_DSM_UINT64, &bit, &bit);
  return (void*)(uintptr_t)(one == -3 && most == 1.5 && bit == 14 ? me : 99);
}

static void* create_another(void* number) {
  tombolo_dsm_thread_t child;
  if ((uintptr_t)number == 0) return (void*)1;
  if (tombolo_dsm_thread_create(&child, create_another, (void*)((uintptr_t)number - 1)) != 0) return NULL;
  void* value = NULL;
  if (tombolo_dsm_thread_join(child, &value) != 0) return NULL;
  return (void*)((uintptr_t)value + 1);
}

int main(int argc, char** argv) {
  tombolo_dsm_init_first();
  struct shared* const s = tombolo_dsm_malloc(sizeof *s);
  memset(s, 0, sizeof *s);
  s->mutex = tombolo_dsm_mutex_create();
  s->cond = tombolo_dsm_cond_create();
  s->all = tombolo_dsm_barrier_create(3);
  s->sum = tombolo_dsm_redvar_create(TOMBOLO_DSM_SUM, 3);
  s->most = tombolo_dsm_redvar_create(TOMBOLO_DSM_MAX, 3);
  s->bits = tombolo_dsm_redvar_create(TOMBOLO_DSM_BIT_OR, 3);
  if (tombolo_dsm_key_create(&s->key, add_end) != 0) return 1;
  tombolo_dsm_thread_t threads[3], more;
  for (int round = 0; round < 3; ++round) {
    tombolo_dsm_mutex_lock(s->mutex);  // so that none of them ends
    for (int i = 0; i < 3; ++i)
      if (tombolo_dsm_thread_create(&threads[i], push, s) != 0) return 2;
    if (tombolo_dsm_thread_create(&more, push, s) != EAGAIN) return 3;
    tombolo_dsm_mutex_unlock(s->mutex);
    uint64_t sum = 0;
    for (int taken = 0; taken < 150; ++taken) {
      tombolo_dsm_mutex_lock(s->mutex);
      while (s->list == NULL) tombolo_dsm_cond_wait(s->cond, s->mutex);
      struct node* const node = s->list;
      s->list = node->next;
      sum += node->value;
      tombolo_dsm_mutex_unlock(s->mutex);
      tombolo_dsm_free(node);
    }
    uintptr_t numbers = 0;
    for (int i = 0; i < 3; ++i) {
      void* value = NULL;
      if (tombolo_dsm_thread_join(threads[i], &value) != 0) return 4;
      numbers += (uintptr_t)value;
    }
    tombolo_dsm_mutex_lock(s->mutex);
    printf("%llu %d %llu %llu\n", (unsigned long long)sum, (int)numbers, (unsigned long long)s->pushed,
           (unsigned long long)s->ended);
    tombolo_dsm_mutex_unlock(s->mutex);
  }
  if (tombolo_dsm_thread_join(threads[0], NULL) != ESRCH) return 5;
  if (tombolo_dsm_thread_join(tombolo_dsm_thread_self(), NULL) != EDEADLK) return 6;
  if (tombolo_dsm_thread_create(&more, create_another, (void*)2) != 0) return 7;
  void* depth = NULL;
  tombolo_dsm_thread_join(more, &depth);
  char* text = tombolo_dsm_malloc(100);
  strcpy(text, "moved");
  text = tombolo_dsm_realloc(text, 100000);
  printf("%d %s %d\n", (int)(uintptr_t)depth, text, argc > 1 ? argv[1][0] : 0);
  if (tombolo_dsm_malloc((size_t)1 << 40) != NULL || errno != ENOMEM) return 8;
  tombolo_dsm_free(text);
  tombolo_dsm_finalize();
  return 0;
}
"""

# All run main(), and each takes and gives back blocks by itself.
ALONE = r"""
#include <errno.h>
#include <stdio.h>
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), n = tombolo_dsm_threads();
  uint64_t** const heads = tombolo_dsm_malloc(n * sizeof *heads);
  tombolo_dsm_redvar_t sum = tombolo_dsm_redvar_create(TOMBOLO_DSM_SUM, n);
  if (tombolo_dsm_heap_create((size_t)1 << 40) != ENOMEM) return 3;
  void* const next = tombolo_dsm_malloc(64);
  tombolo_dsm_free(next);
  if (tombolo_dsm_heap_create(1000) != ENOMEM) return 4;  // less than a heap needs
  if (tombolo_dsm_malloc(64) != next) return 5;
  if (tombolo_dsm_heap_create(1 << 20) != 0) return 1;
  tombolo_dsm_key_t key, other;
  tombolo_dsm_key_create(&key, NULL);
  tombolo_dsm_key_create(&other, NULL);
  tombolo_dsm_setspecific(key, heads);
  heads[me] = NULL;
  for (uint64_t i = 0; i <= me * 10; ++i) {
    uint64_t* const block = tombolo_dsm_malloc(40);
    block[0] = (uint64_t)heads[me];
    block[1] = i;
    heads[me] = block;
  }
  tombolo_dsm_barrier_wait();
  uint64_t all = 0;
  for (uint64_t* block = heads[(me + 1) % n]; block != NULL;) {
    uint64_t* const next = (uint64_t*)block[0];
    all += block[1];
    tombolo_dsm_free(block);
    block = next;
  }
  tombolo_dsm_reduce(sum, TOMBOLO_DSM_UINT64, &all, &all);
  if (tombolo_dsm_getspecific(key) != heads || tombolo_dsm_getspecific(other) != NULL) return 2;
  if (me == 0) printf("%llu\n", (unsigned long long)all);
  tombolo_dsm_free(heads);
  tombolo_dsm_finalize();
  return 0;
}
"""

ENDS = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tombolo/dsm.h>
#include <unistd.h>

static const char* part;

static void* work(void* number) {
  if (strcmp(part, "held") == 0)
    tombolo_dsm_mutex_lock((tombolo_dsm_mutex_t){(uint32_t)(uintptr_t)number});
  if (strcmp(part, "killed") == 0) kill(getpid(), SIGKILL);
  if (strcmp(part, "not joined") == 0) usleep(100000);
  if (strcmp(part, "numbers") == 0) {
    tombolo_dsm_key_t key;
    tombolo_dsm_key_create(&key, NULL);
    return (void*)(uintptr_t)(tombolo_dsm_mutex_create().number * 10000 + key.number * 100 +
                              tombolo_dsm_redvar_create(TOMBOLO_DSM_SUM, 1).number);
  }
  printf("the thread\n");
  return number;
}

int main(int argc, char** argv) {
  part = argc > 1 ? argv[1] : "";
  if (strcmp(part, "mixed") == 0 && open(argv[2], O_CREAT | O_EXCL, 0600) >= 0) tombolo_dsm_init();
  tombolo_dsm_init_first();
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create();
  tombolo_dsm_thread_t thread;
  if (strcmp(part, "barrier") == 0) tombolo_dsm_barrier_wait();
  if (strcmp(part, "code") == 0) tombolo_dsm_thread_create(&thread, (void* (*)(void*))&thread, NULL);
  if (strcmp(part, "leaves") == 0) return 4;
  if (strcmp(part, "numbers") == 0) {
    tombolo_dsm_key_t key;
    tombolo_dsm_key_create(&key, NULL);
    tombolo_dsm_redvar_create(TOMBOLO_DSM_SUM, 1);
  }
  tombolo_dsm_thread_create(&thread, work, (void*)(uintptr_t)mutex.number);
  void* number = NULL;
  if (strcmp(part, "not joined") != 0) tombolo_dsm_thread_join(thread, &number);
  if (strcmp(part, "numbers") == 0) printf("%d\n", (int)(uintptr_t)number);
  if (strcmp(part, "lines") == 0) printf("after it\n"), fflush(stdout);
  tombolo_dsm_finalize();
  printf("the end\n");
  return 0;
}
"""


# Each operation on each type, of a value of each of two threads.
REDUCTIONS = r"""
#include <stdio.h>
#include <string.h>
#include <tombolo/dsm.h>

static unsigned me;
static int wrong;

#define REDUCE(type, number, op, a, b, expected)                                              \
  do {                                                                                        \
    type value = me == 0 ? (type)(a) : (type)(b), result = 0, right = (type)(expected);       \
    tombolo_dsm_reduce(tombolo_dsm_redvar_create(op, 2), number, &value, &result);            \
    if (result != right) ++wrong, printf("%s by %s\n", #number, #op);                         \
  } while (0)

#define WHOLE(type, number)                                                                   \
  REDUCE(type, number, TOMBOLO_DSM_BIT_AND, 12, -6, 12 & -6);                                 \
  REDUCE(type, number, TOMBOLO_DSM_BIT_OR, 12, -6, 12 | -6);                                  \
  REDUCE(type, number, TOMBOLO_DSM_BIT_XOR, 12, -6, 12 ^ -6)

#define ALL(type, number, least, most)                                                        \
  REDUCE(type, number, TOMBOLO_DSM_SUM, 12, -7, 5);                                           \
  REDUCE(type, number, TOMBOLO_DSM_PRODUCT, 12, -7, -84);                                     \
  REDUCE(type, number, TOMBOLO_DSM_MIN, 12, -7, least);                                       \
  REDUCE(type, number, TOMBOLO_DSM_MAX, 12, -7, most);                                        \
  REDUCE(type, number, TOMBOLO_DSM_MIN, -7, 12, least);                                       \
  REDUCE(type, number, TOMBOLO_DSM_MAX, -7, 12, most);                                        \
  REDUCE(type, number, TOMBOLO_DSM_AND, 12, -7, 1);                                           \
  REDUCE(type, number, TOMBOLO_DSM_AND, 12, 0, 0);                                            \
  REDUCE(type, number, TOMBOLO_DSM_OR, 0, -7, 1);                                             \
  REDUCE(type, number, TOMBOLO_DSM_OR, 0, 0, 0)

int main(int argc, char** argv) {
  tombolo_dsm_init();
  me = tombolo_dsm_thread();
  float half = 0.5f, other = 0;
  if (argc > 1) {
    tombolo_dsm_op op = strcmp(argv[1], "operation") == 0 ? (tombolo_dsm_op)9 : TOMBOLO_DSM_BIT_OR;
    tombolo_dsm_redvar_t var = tombolo_dsm_redvar_create(op, strcmp(argv[1], "count") == 0 ? 3 : 2);
    tombolo_dsm_reduce(var, strcmp(argv[1], "type") == 0 ? (tombolo_dsm_type)6 : TOMBOLO_DSM_FLOAT, &half, &other);
  }
  ALL(int32_t, TOMBOLO_DSM_INT32, -7, 12);
  ALL(uint32_t, TOMBOLO_DSM_UINT32, 12, -7);
  ALL(int64_t, TOMBOLO_DSM_INT64, -7, 12);
  ALL(uint64_t, TOMBOLO_DSM_UINT64, 12, -7);
  ALL(float, TOMBOLO_DSM_FLOAT, -7, 12);
  ALL(double, TOMBOLO_DSM_DOUBLE, -7, 12);
  WHOLE(int32_t, TOMBOLO_DSM_INT32);
  WHOLE(uint32_t, TOMBOLO_DSM_UINT32);
  WHOLE(int64_t, TOMBOLO_DSM_INT64);
  WHOLE(uint64_t, TOMBOLO_DSM_UINT64);
  REDUCE(int64_t, TOMBOLO_DSM_INT64, TOMBOLO_DSM_SUM, INT64_MAX, 1, INT64_MIN);
  REDUCE(double, TOMBOLO_DSM_DOUBLE, TOMBOLO_DSM_SUM, 0.25, 0.5, 0.75);
  tombolo_dsm_finalize();
  if (me == 0 && wrong == 0) printf("right\n");
  return wrong;
}
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    libraries.need_program(dsm.LIBRARY)
    libraries.need_program(dsm.LAUNCHER)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dsm_threads")
    made = {}
    for name, text in (("list", LIST), ("alone", ALONE), ("ends", ENDS), ("reductions", REDUCTIONS)):
        source = folder / f"{name}.c"
        source.write_text(text)
        options = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-pedantic"]
        subprocess.run(["cc", *options, source, "-o", folder / name, *dsm.flags()], check=True)
        made[name] = folder / name
    return made


def run(*words, **environment) -> subprocess.CompletedProcess:
    argv = [*COMMAND, "dsm", "run", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=os.environ | environment, timeout=120)


LIST_SAYS = "".join(f"303675 6 {150 * round} {3 * round}\n" for round in (1, 2, 3)) + "3 moved 120\n"


@pytest.mark.parametrize("how", HOW, ids=lambda words: "-".join(words[1::2]))
def test_one_thread_creates_the_others_and_takes_memory_alone(programs, how):
    done = run("-n", 4, *how, "--memory", "16MiB", programs["list"], "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, LIST_SAYS, "")


def test_created_threads_run_between_hosts(programs):
    try:
        dsm.mpi_job(dsm.Choice(transport="mpi"), None, 2, ["true"])
    except UserError as why:
        pytest.skip(str(why))
    done = run("-n", 4, "--transport", "mpi", "--memory", "16MiB", programs["list"], "x")
    assert (done.returncode, done.stdout) == (0, LIST_SAYS), done.stderr


@pytest.mark.parametrize("how", HOW, ids=lambda words: "-".join(words[1::2]))
def test_threads_take_blocks_alone_where_all_run_main(programs, how):
    done = run("-n", 3, *how, "--memory", "16MiB", programs["alone"])
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{55 + 210}\n", "")


def test_threads_that_were_not_joined_have_ended_at_the_end(programs):
    done = run("-n", 2, programs["ends"], "not joined")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the thread\nthe end\n", "")


def test_lines_of_a_thread_come_before_those_of_its_joiner(programs):
    done = run("-n", 2, programs["ends"], "lines")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the thread\nafter it\nthe end\n", "")


def test_a_created_thread_takes_other_numbers_than_the_first_one(programs):
    done = run("-n", 2, programs["ends"], "numbers")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "10105\nthe end\n", "mutex 1, key 1, words behind the five of a reduction"


def test_processes_that_start_in_different_ways_are_refused(programs, tmp_path):
    done = run("-n", 2, programs["ends"], "mixed", tmp_path / "first")
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.count("one process has called tombolo_dsm_init, another tombolo_dsm_init_first") == 1


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("held", "a thread has ended, and holds 1 mutexes"),
        ("barrier", "tombolo_dsm_barrier_wait: it is of all processes"),
        ("code", "is no function of the program or of its libraries"),
        ("killed", "process 1 was killed by signal 9"),
    ],
)
@pytest.mark.parametrize("transport", ["map", "window"])
def test_mistakes_and_deaths_are_told_once(programs, part, told, transport):
    done = run("-n", 2, "--transport", transport, programs["ends"], part)
    assert done.returncode != 0 and "the end" not in done.stdout
    assert told in done.stderr


def test_a_first_thread_that_leaves_ends_the_program_with_its_status(programs):
    done = run("-n", 2, programs["ends"], "leaves")
    assert done.returncode == 4


def test_a_reduction_has_the_operators_of_openmp_on_each_type(programs):
    done = run("-n", 2, programs["reductions"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("bits", "the operation 5 is one of whole numbers"),
        ("operation", "no operation has the number 9"),
        ("type", "no type has the number 6"),
        ("count", "a reduction of 3 threads; the program has 2"),
    ],
)
def test_mistakes_of_a_reduction_are_told(programs, mistake, told):
    done = run("-n", 2, programs["reductions"], mistake)
    assert done.returncode != 0
    assert told in done.stderr
