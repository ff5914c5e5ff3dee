# SPDX-License-Identifier: Apache-2.0
"""Random programs with spans, in C and C++, whose stores are known: the test of store instrumentation.

A program stores to one object, `shared_memory`, by statements that can also say which bytes they store
(compiled with -DNOTED and without the plugin). So a run of the instrumented program can be compared with
a run that is right by construction. Same seed, same program.
"""

import random
from dataclasses import dataclass, field

HEADER = """\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <mutex>
#include <stdexcept>
extern "C" {
#endif
void tombolo_dsm_record(const void* address, size_t bytes);
#ifdef __cplusplus
}
#endif
#ifdef NOTED
#define NOTE(address, bytes) tombolo_dsm_record(address, bytes)
#else
#define NOTE(address, bytes) ((void)0)
#endif
#define SET(to, value) (NOTE(&(to), sizeof(to)), (to) = (value))
#define COPY(to, from, bytes) (NOTE(to, bytes), memmove(to, from, bytes))
#define MCOPY(to, from, bytes) (NOTE(to, bytes), memcpy(to, from, bytes))
#define FILL(to, value, bytes) (NOTE(to, bytes), memset(to, value, bytes))
#define TEXT(to, from) (NOTE(to, strlen(from) + 1), strcpy(to, from))
#define PRINT(to, bytes, value) \\
  do { \\
    long printed = snprintf(to, bytes, "%ld", (long)(value)) + 1; \\
    NOTE(to, printed < (bytes) ? printed : (bytes)); \\
  } while (0)
typedef struct { char c; int i; double d; short s[3]; long l; } item;
typedef struct {
  char c[64]; short s[48]; int i[64]; long l[48]; float f[64]; double d[48];
  item items[12]; char text[64]; int x, y; char b1, b2, b3; long z;
} memory;
#define NOINLINE __attribute__((noinline))
"""
ARRAYS = {"c": 64, "s": 48, "i": 64, "l": 48, "f": 64, "d": 48}
SCALARS = ("x", "y", "b1", "b2", "b3", "z")
FIELDS = ("c", "i", "d", "l")
MUTEXES = 3


@dataclass
class Writer:
    """Writes one program."""

    seed: int
    cpp: bool
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    held: list[int] = field(default_factory=list)
    fresh: int = 0
    functions: int = 0
    loops: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.cpp}")

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    # --- Parts of statements ---

    def number(self) -> str:
        return str(self.random.randint(1, 99))

    def value(self) -> str:
        return self.random.choice(
            (f"n + {self.number()}", f"n * {self.number()}", f"m.i[{self.random.randrange(64)}] + n",
             f"(n ^ {self.number()}) + m.x", self.number())
        )  # fmt: skip

    def index(self, size: int) -> str:
        if self.random.random() < 0.5:
            return str(self.random.randrange(size))
        return f"(unsigned long)(n + {self.number()}) % {size}"

    def place(self) -> str:
        kind = self.random.randrange(4)
        if kind == 0:
            return f"m.{self.random.choice(SCALARS)}"
        if kind == 1:
            array = self.random.choice(list(ARRAYS))
            return f"m.{array}[{self.index(ARRAYS[array])}]"
        if kind == 2:
            return f"m.items[{self.index(12)}].{self.random.choice(FIELDS)}"
        return f"it->{self.random.choice(FIELDS)}"

    # --- Statements ---

    def block(self, depth: int, most: int = 4) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        simple = [self.store, self.store, self.neighbours, self.copy, self.private]
        nested = [self.loop, self.loop, self.branch, self.span, self.span, self.tried, self.call]
        if self.cpp:
            nested += [self.guard, self.throwing]
        choice = simple if depth == 0 else simple + nested
        self.random.choice(choice)(depth - 1)

    def store(self, _: int) -> None:
        self.line(f"SET({self.place()}, {self.value()});")

    def neighbours(self, _: int) -> None:
        array = self.random.choice(list(ARRAYS))
        first = self.random.randrange(ARRAYS[array] - 8)
        for step in self.random.sample(range(8), self.random.randint(2, 6)):
            self.line(f"SET(m.{array}[{first + step}], {self.value()});")

    def copy(self, _: int) -> None:
        kind = self.random.randrange(6)
        bytes_ = self.random.choice((str(self.random.randint(1, 64)), "(unsigned long)n % 48"))
        a, b = self.random.sample(list(ARRAYS), 2)
        if kind == 0:
            self.line(f"SET(m.items[{self.index(12)}], m.items[{self.index(12)}]);")
        elif kind == 1:
            self.line(f"MCOPY(m.{a}, m.{b}, {bytes_});")
        elif kind == 2:
            self.line(f"COPY((char*)m.{a} + 3, (char*)m.{a}, ({bytes_}) / 2);")
        elif kind == 3:
            self.line(f"FILL(m.{a}, (int)({self.value()}), {bytes_});")
        elif kind == 4:
            self.line(f'TEXT(m.text + {self.random.randrange(16)}, n % 2 ? "ab" : "other text");')
        else:
            self.line(f"PRINT(m.text + {self.random.randrange(16)}, {self.random.choice(['2', '5', '24'])}, n);")

    def private(self, _: int) -> None:
        """Stores that no other thread can see, and some that it could."""
        own = self.name("own")
        self.line(f"int {own}[8]; for (int k = 0; k < 8; k++) {own}[k] = (int)n + k;")
        if self.random.random() < 0.5:
            self.line(f"escape({own});")
        self.line(f"n += {own}[n & 7];")

    def loop(self, depth: int) -> None:
        k = self.name("k")
        array = self.random.choice(list(ARRAYS))
        size = ARRAYS[array]
        step = self.random.choice((1, 1, 1, 2, 3))
        end = self.random.choice((str(self.random.randint(1, size)), f"(long)((unsigned long)n % {size})"))
        head = f"for (long {k} = 0; {k} < {end}; {k} += {step})"
        if self.random.random() < 0.2:
            head = f"for (long {k} = {end} - 1; {k} >= 0; {k} -= {step})"
        kind = self.random.randrange(5)
        if kind <= 1:
            self.line(f"{head} SET(m.{array}[{k}], {k} + {self.value()});")
        elif kind == 2:
            self.line(f"{head} if (({k} + n) & {self.random.randint(1, 3)}) SET(m.{array}[{k}], {k});")
        elif kind == 3:
            self.line(f"{head} {{ SET(m.{array}[{k}], {k} * n); if ({k} == n % 16) break; SET(m.z, n + {k}); }}")
        elif self.loops == 0:
            self.line(f"for (long {k} = 0; {k} < {self.random.randint(1, 3)}; {k}++) {{")
            self.loops += 1
            self.inner(depth, 2)
            self.loops -= 1
            self.line("}")
        else:
            rows = f"for (long {k} = 0; {k} < 6; {k}++)"
            self.line(f"{rows} for (long j = 0; j < 8; j++) SET(m.l[{k} * 8 + j], n + j);")

    def inner(self, depth: int, most: int = 4) -> None:
        self.indent += 1
        self.block(max(depth, 0), most)
        self.indent -= 1

    def branch(self, depth: int) -> None:
        self.line(f"if ((n + {self.number()}) % {self.random.randint(2, 4)}) {{")
        self.inner(depth)
        if self.random.random() < 0.5:
            self.line("} else {")
            self.inner(depth)
        self.line("}")

    def free_mutex(self) -> int | None:
        free = [lock for lock in range(MUTEXES) if lock not in self.held]
        return self.random.choice(free) if free else None

    def span(self, depth: int) -> None:
        """One lock, or two that are given back in either order, some by functions that lock for their caller."""
        lock = self.free_mutex()
        if lock is None:
            self.store(depth)
            return
        taken = f"take({lock})" if self.random.random() < 0.2 else f"pthread_mutex_lock(&mutexes[{lock}])"
        given = f"give({lock})" if self.random.random() < 0.2 else f"pthread_mutex_unlock(&mutexes[{lock}])"
        self.held.append(lock)
        self.line(f"{taken};")
        self.inner(depth)
        second = self.free_mutex() if self.random.random() < 0.3 else None
        if second is not None:
            self.line(f"pthread_mutex_lock(&mutexes[{second}]);")
            self.inner(depth, 2)
        self.line(f"{given};")
        if second is not None:
            self.inner(depth, 2)
            self.line(f"pthread_mutex_unlock(&mutexes[{second}]);")
        self.held.remove(lock)

    def tried(self, depth: int) -> None:
        lock = self.free_mutex()
        if lock is None:
            self.store(depth)
            return
        self.held.append(lock)
        self.line(f"if (pthread_mutex_trylock(&mutexes[{lock}]) == 0) {{")
        self.inner(depth)
        self.line(f"  pthread_mutex_unlock(&mutexes[{lock}]);")
        self.line("}")
        self.held.remove(lock)

    def call(self, depth: int) -> None:
        # It takes mutexes of its own, and none that its callers hold.
        if self.functions == 0 or self.held or self.loops:
            self.leaf(depth)
            return
        number = self.random.randrange(self.functions)
        self.line(f"if (--budget > 0) f{number}(n + {self.number()}, &m.items[{self.index(12)}]);")

    def leaf(self, _: int) -> None:
        """A function without spans, which may be called inside of them and outside."""
        number = self.random.randrange(5)
        called = self.random.choice((f"leaf{number}", f"leaves[(n + {number}) & 3]"))
        self.line(f"{called}(n + {self.number()}, &m.items[{self.index(12)}]);")

    def guard(self, depth: int) -> None:
        lock = self.free_mutex()
        if lock is None:
            self.store(depth)
            return
        self.held.append(lock)
        kind = self.random.choice(("std::lock_guard<std::mutex>", "std::unique_lock<std::mutex>"))
        self.line(f"{{ {kind} {self.name('guard')}(cpp_mutexes[{lock}]);")
        self.inner(depth)
        self.line("}")
        self.held.remove(lock)

    def throwing(self, depth: int) -> None:
        lock = self.free_mutex()
        if lock is None:
            self.store(depth)
            return
        self.held.append(lock)
        self.line("try {")
        self.line(f"  std::lock_guard<std::mutex> {self.name('guard')}(cpp_mutexes[{lock}]);")
        self.inner(depth, 2)
        self.line('  if (n % 2) throw std::runtime_error("n");')
        self.inner(depth, 2)
        self.line("} catch (const std::runtime_error&) {")
        self.held.remove(lock)
        self.inner(depth, 1)
        self.line("}")

    # --- The program ---

    def function(self, name: str, kind: str, depth: int) -> None:
        self.line(f"{kind} void {name}(long n, item* it) {{")
        self.line("  (void)it;")
        self.inner(depth, 6)
        self.line("}")

    def leaf_function(self, number: int) -> None:
        self.held, self.loops = list(range(MUTEXES)), 1
        kind = self.random.choice(("static", "static NOINLINE", "NOINLINE", ""))
        saved, self.leaf = self.leaf, self.store  # leaves call no leaves
        self.function(f"leaf{number}", kind, 2)
        self.leaf = saved
        self.held, self.loops = [], 0

    def program(self) -> str:
        self.line(HEADER)
        self.line("#define m (*(memory*)shared_memory)")
        extern = 'extern "C" ' if self.cpp else "extern "
        self.line(f"{extern}unsigned char shared_memory[sizeof(memory)] __attribute__((aligned(64)));")
        self.line(f"{extern}const size_t shared_bytes;" if self.cpp else "")
        self.line("unsigned char shared_memory[sizeof(memory)] __attribute__((aligned(64)));")
        self.line("const size_t shared_bytes = sizeof(memory) / 4 * 4;")
        self.line(f"static pthread_mutex_t mutexes[{MUTEXES}];")
        if self.cpp:
            self.line(f"static std::mutex cpp_mutexes[{MUTEXES}];")
        self.line("static long budget = 40;")
        self.line("NOINLINE void escape(int* p) { p[1] += 2; }")
        self.line("static NOINLINE void take(int lock) { pthread_mutex_lock(&mutexes[lock]); }")
        self.line("static void give(int lock) { pthread_mutex_unlock(&mutexes[lock]); }")
        for number in range(5):
            self.leaf_function(number)
        self.line("static void (*const leaves[4])(long, item*) = {leaf0, leaf1, leaf2, leaf3};")
        for number in range(self.random.randint(2, 5)):
            kind = self.random.choice(("static", "NOINLINE", "static NOINLINE"))
            self.function(f"f{number}", kind, 4)
            self.functions = number + 1
        self.line("int main(int argc, char** argv) {")
        self.line("  long n = argc + 6; item* it = &m.items[n % 12]; (void)argv; (void)it; (void)escape; (void)take;")
        self.line("  (void)give; (void)leaves; for (int k = 0; k < 12; k++) m.items[k].l = k;")
        for number in range(self.functions):
            self.line(f"  f{number}(n + {number}, it);")
        self.inner(4, 8)
        self.line(
            "  unsigned long sum = 0; for (size_t k = 0; k < shared_bytes; k++) sum = sum * 31 + shared_memory[k];"
        )
        self.line('  printf("memory %lx\\n", sum);')
        self.line("  return 0;")
        self.line("}")
        return "\n".join(self.lines) + "\n"


def program(seed: int, cpp: bool) -> str:
    return Writer(seed, cpp).program()
