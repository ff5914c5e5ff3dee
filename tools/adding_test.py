# SPDX-License-Identifier: Apache-2.0
"""Extensions are found wherever they should be: a copy of the tree gets one example of each kind of
extension, by the files and lines that the docs name and no others, and unchanged programs must know
it by name.

Only the needs of such a program are compiled, without optimization; unused parts are not linked.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tombolo import starvation

ROOT = Path(__file__).resolve().parent.parent
COMPILER = [*os.environ.get("CXX", "c++").split(), "-std=c++20", "-O0", "-DFMT_HEADER_ONLY"]
UNUSED_MAY_MISS = ["-no-pie", "-Wl,--unresolved-symbols=ignore-all"]


class Tree:
    """A copy of the files that git tracks or would track."""

    def __init__(self, folder: Path):
        self.folder = folder / "tree"
        self.made = folder / "made"
        self.made.mkdir()
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.folder / name)

    def add_file(self, path: str, text: str) -> None:
        assert not (self.folder / path).exists(), path
        (self.folder / path).write_text(text)

    def add_line(self, path: str, after: str, line: str) -> None:
        """Behind the one line that begins with `after`, blanks aside."""
        lines = (self.folder / path).read_text().splitlines(keepends=True)
        (place,) = (i for i, text in enumerate(lines) if text.lstrip().startswith(after))
        lines.insert(place + 1, line + "\n")
        (self.folder / path).write_text("".join(lines))

    def compile(self, *sources: str) -> list[Path]:
        """The objects of sources of the tree, compiled at once."""
        objects = []
        running = []
        for source in sources:
            objects.append(self.made / (source.replace("/", "_") + ".o"))
            command = [*COMPILER, "-fPIC", "-I", ".", "-c", source, "-o", objects[-1]]
            running.append(subprocess.Popen(command, cwd=self.folder))
        assert [process.wait() for process in running] == [0] * len(running)
        return objects

    def program(self, main: str, *sources: str) -> Path:
        """A program of this text and of sources of the tree."""
        (self.folder / "main_of_test.cpp").write_text(main)
        return self._link("program", [*UNUSED_MAY_MISS, "-pthread"], "main_of_test.cpp", *sources)

    def library(self, *sources: str) -> Path:
        return self._link("library.so", ["-shared"], *sources)

    def _link(self, name: str, options: list[str], *sources: str) -> Path:
        command = [*COMPILER, *self.compile(*sources), *options, "-o", self.made / name]
        subprocess.run(command, cwd=self.folder, check=True)
        return self.made / name


def output(program: Path, **environment: str) -> list[str]:
    environment = os.environ | environment
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# --- A lock family (sync/CATALOGUE.md) -----------------------------------------------------------

FAMILY = """\
#pragma once
#include <cstdio>
#include "sync/locks/fifo_lock.h"

namespace tombolo::sync {

template <machine::Core C>
class ExampleLocks : public GatedLocks<C, FifoTargets<C>, FifoGate<C>> {
  using Base = GatedLocks<C, FifoTargets<C>, FifoGate<C>>;

 public:
  using Base::Base;
  Status lock(Access access, machine::Home target) {
    std::puts("example locks");
    return Base::lock(access, target);
  }
};

struct ExampleFamily {
  template <machine::Core C>
  using Locks = ExampleLocks<C>;
  static constexpr LockFamilyTraits traits{.name = "example", .order = LockOrder::arrival};
};

}  // namespace tombolo::sync
"""

STEPS = 100
# Two cores and a window with the locks that the environment names.
USER = r"""
#include <cstdio>
#include "backends/coherent/coherent.h"
#include "litmus/programs/registry.h"
#include "machine/testing/ensemble.h"
#include "mpi/runtime/options.h"
#include "sync/locks/families.h"
#include "windows/window.h"

using namespace tombolo;
using Window = windows::Window<coherent::Core>;

void must(const Status& status) { TOMBOLO_CHECK(status.ok(), "{}", status.message()); }

void use(const windows::EngineOptions& options) {
  machine::testing::Host<coherent::Core> host({.sync_bytes = Window::sync_bytes(2)});
  const machine::Attachment at[] = {host.attachment(0), host.attachment(1)};
  int holders = 0;
  host.run([&](machine::Home self) {
    Window window(at[self], options);
    for (int step = 0; step < STEPS; ++step) {
      must(window.lock(sync::Access::exclusive, 1, {}));
      TOMBOLO_CHECK(++holders == 1, "two holders");
      --holders;
      must(window.unlock(1));
    }
    must(window.lock_all({}));
    must(window.unlock_all());
  });
}

int main() {
  const mpi::Options options = mpi::read_environment();
  for (const std::string& complaint : options.complaints)
    std::printf("complaint %s\n", complaint.c_str());
  use({.locks = options.locks});
  std::printf("used %s\n", mpi::name(options.locks));
  for (const std::string_view name : sync::EveryLockFamily::names)
    std::printf("tested %s\n", std::string(name).c_str());
  for (const litmus::ExploredProgram& program : litmus::lock_programs())
    std::printf("explored %s\n", program.name.c_str());
}
"""


def add_family(tree: Tree) -> None:
    tree.add_file("sync/locks/example_lock.h", FAMILY)
    families = "sync/locks/families.h"
    include = '#include "sync/locks/{}_lock.h"'
    tree.add_line(families, after=include.format("fifo"), line=include.format("example"))
    tree.add_line(families, after="FifoFamily,", line="ExampleFamily,")


def test_a_lock_family_is_one_file_and_its_name_in_the_list(tree: Tree):
    add_family(tree)
    user = USER.replace("STEPS", str(STEPS))
    program = tree.program(user, "mpi/runtime/options.cpp", "litmus/programs/locks.cpp")
    told = output(program, TOMBOLO_PASSIVE_SYNC="example")
    assert "used example" in told
    assert told.count("example locks") == 2 * STEPS
    assert not any(line.startswith("complaint") for line in told)
    assert "tested example" in told
    assert "explored example/writers" in told
    assert "explored example/lock-all-and-writers" in told
    told = output(program, TOMBOLO_PASSIVE_SYNC="fifo")
    assert "used fifo" in told
    assert "example locks" not in told
    (refused, *_) = output(program, TOMBOLO_PASSIVE_SYNC="bakery")
    assert refused.endswith("it may be one of best-effort, writer-preference, fifo, example")


def test_the_command_learns_a_new_lock_family_from_the_library(tree: Tree):
    add_family(tree)
    library = tree.library("mpi/runtime/lock_families.cpp")
    example = starvation.Family("example", "arrival", reader_bias=False)
    assert example in starvation.families(library)
