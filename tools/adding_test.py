# SPDX-License-Identifier: Apache-2.0
"""Extensions are found wherever they should be: a copy of the tree gets one example of each kind of
extension, by the files and lines that the docs name and no others, and unchanged programs must know
it by name.

Only the needs of such a program are compiled, without optimization; unused parts are not linked.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
            command = [*COMPILER, "-fPIC", "-I", ".", "-c", source, "-o", str(objects[-1])]
            running.append(subprocess.Popen(command, cwd=self.folder))
        assert [process.wait() for process in running] == [0] * len(running)
        return objects

    def program(self, main: str, *sources: str) -> Path:
        """A program of this text and of sources of the tree."""
        (self.folder / "main_of_test.cpp").write_text(main)
        return self._link("program", [*UNUSED_MAY_MISS, "-pthread"], "main_of_test.cpp", *sources)

    def _link(self, name: str, options: list[str], *sources: str) -> Path:
        command = [*COMPILER, *map(str, self.compile(*sources)), *options, "-o", str(self.made / name)]
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
#include "runtime/options/options.h"
#include "sync/locks/families.h"
#include "windows/window.h"

using namespace tombolo;
using Window = windows::Window<coherent::Core>;

void must(const Status& status) { TOMBOLO_CHECK(status.ok(), "{}", status.message()); }

void use(const windows::EngineOptions& options) {
  machine::testing::Host<coherent::Core> host({.sync_bytes = Window::sync_bytes(2)});
  const coherent::Attachment at[] = {{host.attachment(0)}, {host.attachment(1)}};
  int holders = 0;
  auto both = [&](machine::Home self) {
    Window window(at[self], options);
    for (int step = 0; step < STEPS; ++step) {
      must(window.lock(sync::Access::exclusive, 1, {}));
      TOMBOLO_CHECK(++holders == 1, "two holders");
      --holders;
      must(window.unlock(1));
    }
    must(window.lock_all({}));
    must(window.unlock_all());
  };
  host.run(machine::testing::BodyRef(both));
}

int main() {
  const runtime::Options options = runtime::read_environment();
  for (const std::string& complaint : options.complaints)
    std::printf("complaint %s\n", complaint.c_str());
  use({.locks = options.locks});
  std::printf("used %s\n", std::string(sync::lock_family_name(options.locks)).c_str());
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
    options = [f"runtime/options/{name}.cpp" for name in ("mistyped", "options", "table")]
    sources = [*options, "runtime/engines/engines.cpp", "base/options.cpp"]
    program = tree.program(user, *sources, "litmus/programs/locks.cpp")
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


def test_the_command_learns_a_new_lock_family_from_the_settings(tree: Tree):
    add_family(tree)
    families = settings_of(tree)["lock_families"]
    assert {"name": "example", "order": "arrival", "reader_bias": False} in families


# --- A machine that programs may choose (machine/PORTING.md) --------------------------------------

MACHINE = """\
#pragma once
#include <string_view>
#include "base/type_list.h"
#include "machine/example_machine.h"

namespace tombolo::meadow {

class Core : public machine::example::Core {
 public:
  using machine::example::Core::Core;
  static constexpr machine::Properties properties{
      .name = "meadow", .coherent = true, .native_atomics = machine::Atomics::full,
      .line_bytes = 64};
};

struct Machine {
  static constexpr std::string_view name = "meadow";
  using Cores = TypeList<Core>;
};

}  // namespace tombolo::meadow
"""

# A window of one process on the machine that the environment names; and the machines of the tests.
USER_OF_MACHINE = r"""
#include <cstdio>
#include <memory_resource>
#include <vector>
#include "backends/machines.h"
#include "runtime/engines/engines.h"
#include "runtime/options/options.h"

using namespace tombolo;

template <class... Cores>
void tested(TypeList<Cores...>) {
  (std::printf("tested %s\n", std::string(Cores::properties.name).c_str()), ...);
}

int main() {
  const runtime::Options options = runtime::read_environment();
  for (const std::string& complaint : options.complaints)
    std::printf("complaint %s\n", complaint.c_str());
  tested(AllMachines());
  const runtime::ServedMachine& machine = runtime::served({options.machine});
  alignas(64) static std::byte memory[1 << 16];
  machine::Attachment at;
  at.sync = memory;
  at.sync_bytes_per_home = machine.sync_bytes(1);
  at.data.push_back({.memory = memory + (1 << 15), .bytes = 64});
  std::pmr::monotonic_buffer_resource room;
  const runtime::EnginePointer engine = machine.engine(std::move(at), {}, {}, room);
  const int mine = 7;
  TOMBOLO_CHECK(engine->lock(sync::Access::exclusive, 0, {}).ok(), "lock");
  TOMBOLO_CHECK(engine->put(0, 8, &mine, sizeof mine).ok(), "put");
  TOMBOLO_CHECK(engine->unlock(0).ok(), "unlock");
  TOMBOLO_CHECK(engine->view(0) == memory + (1 << 15), "the machine views its memory itself");
  std::printf("used %s %d\n", std::string(name(options.machine)).c_str(),
              *reinterpret_cast<int*>(engine->view(0) + 8));
}
"""


def add_machine(tree: Tree) -> None:
    (tree.folder / "backends/meadow").mkdir()
    tree.add_file("backends/meadow/machine.h", MACHINE)
    machines = "backends/machines.h"
    include = '#include "backends/{}/machine.h"'
    tree.add_line(machines, after=include.format("flushed"), line=include.format("meadow"))
    tree.add_line(machines, after="flushed::Machine,", line="    meadow::Machine,")


def engine_on(tree: Tree, machine: str) -> str:
    """The file that runtime/CMakeLists.txt makes for each folder with a machine.h."""
    made = (tree.folder / "runtime/engines/engine_on.cpp.in").read_text()
    name = f"engine_on_{machine}.cpp"
    tree.add_file(name, made.replace("@machine@", machine))
    return name


def settings_of(tree: Tree) -> dict:
    options = ("options", "table", "table_text")
    sources = [f"runtime/options/{name}.cpp" for name in options]
    main = (tree.folder / "runtime/options/settings_main.cpp").read_text()
    names = ["runtime/engines/engines.cpp", "base/options.cpp"]
    program = tree.program(main, *sources, *names)
    told = subprocess.run([program, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def test_a_machine_is_one_folder_and_its_place_in_the_list(tree: Tree):
    add_machine(tree)
    sources = [f"runtime/options/{name}.cpp" for name in ("mistyped", "options", "table")]
    own = ["runtime/engines/engines.cpp", engine_on(tree, "meadow"), "base/options.cpp"]
    program = tree.program(USER_OF_MACHINE, *sources, *own)
    told = output(program, TOMBOLO_MACHINE="meadow")
    assert "used meadow 7" in told
    assert "tested meadow" in told
    assert not any(line.startswith("complaint") for line in told)


def test_the_command_learns_a_new_machine_from_the_settings(tree: Tree):
    add_machine(tree)
    settings = settings_of(tree)
    assert "meadow" in settings["machines"]
    (machine,) = (o for o in settings["options"] if o["variable"] == "TOMBOLO_MACHINE")
    assert machine["choices"] == ["coherent", "flushed", "meadow", "stale"]


def test_each_machine_in_the_list_has_the_file_that_the_build_looks_for():
    listed = re.findall(r'"backends/(\w+)/machine.h"', (ROOT / "backends/machines.h").read_text())
    assert sorted(listed) == sorted(path.parent.name for path in ROOT.glob("backends/*/machine.h"))
