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
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMPILER = [*os.environ.get("CXX", "c++").split(), "-std=c++20", "-O0", "-DFMT_HEADER_ONLY"]
OPTIONS = ["runtime/options/mistyped.cpp", "runtime/options/options.cpp", "base/options.cpp"]
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

    def replace(self, path: str, before: str, after: str) -> None:
        """In the one place where a text stands."""
        text = (self.folder / path).read_text()
        assert text.count(before) == 1, path
        (self.folder / path).write_text(text.replace(before, after))

    def run(self, *words: str) -> str:
        """The output of a Python program of the tree."""
        done = subprocess.run([sys.executable, *words], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def compile(self, *sources: str) -> list[Path]:
        """The objects of sources of the tree, compiled at once."""
        self.run("tools/option_table.py", "headers", str(self.made))
        objects = []
        running = []
        for source in sources:
            objects.append(self.made / (source.replace("/", "_") + ".o"))
            command = [*COMPILER, "-fPIC", "-I", ".", "-I", str(self.made), "-c", source, "-o", str(objects[-1])]
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
    tree.replace("base/options.toml", '"writer-preference", "fifo"]', '"writer-preference", "fifo", "example"]')


def test_a_lock_family_is_one_file_and_its_name_in_two_lists(tree: Tree):
    add_family(tree)
    user = USER.replace("STEPS", str(STEPS))
    program = tree.program(user, *OPTIONS, "runtime/engines/engines.cpp", "litmus/programs/locks.cpp")
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
    assert refused.endswith("it may be best-effort, writer-preference, fifo, example")


def test_measurements_learn_a_new_lock_family_from_the_program_that_lists_them(tree: Tree):
    add_family(tree)
    program = tree.program((tree.folder / "runtime/options/locks_main.cpp").read_text())
    families = [json.loads(line) for line in output(program)]
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
    tree.replace("base/options.toml", '["coherent", "flushed", "stale"]', '["coherent", "flushed", "meadow", "stale"]')


def engine_on(tree: Tree, machine: str) -> str:
    """The file that runtime/CMakeLists.txt makes for each folder with a machine.h."""
    made = (tree.folder / "runtime/engines/engine_on.cpp.in").read_text()
    name = f"engine_on_{machine}.cpp"
    tree.add_file(name, made.replace("@machine@", machine))
    return name


def test_a_machine_is_one_folder_and_its_place_in_two_lists(tree: Tree):
    add_machine(tree)
    own = ["runtime/engines/engines.cpp", engine_on(tree, "meadow")]
    program = tree.program(USER_OF_MACHINE, *OPTIONS, *own)
    told = output(program, TOMBOLO_MACHINE="meadow")
    assert "used meadow 7" in told
    assert "tested meadow" in told
    assert not any(line.startswith("complaint") for line in told)


def test_the_command_learns_a_new_machine_from_the_table(tree: Tree):
    add_machine(tree)
    shown = tree.run("cli/tombolo/__main__.py", "run", "--help")
    assert "coherent | flushed | meadow | stale" in " ".join(shown.split())


@pytest.mark.parametrize("add", [add_family, add_machine], ids=["lock-family", "machine"])
def test_a_name_that_the_table_of_options_lacks_does_not_compile(tree: Tree, add):
    before = (tree.folder / "base/options.toml").read_text()
    add(tree)
    (tree.folder / "base/options.toml").write_text(before)
    with pytest.raises(AssertionError):
        tree.compile("runtime/options/options.cpp")


def test_each_machine_in_the_list_has_the_file_that_the_build_looks_for():
    listed = re.findall(r'"backends/(\w+)/machine.h"', (ROOT / "backends/machines.h").read_text())
    assert sorted(listed) == sorted(path.parent.name for path in ROOT.glob("backends/*/machine.h"))


# --- An option (base/options.toml) ----------------------------------------------------------------

OPTION = """
[[option]]
variable = "TOMBOLO_MOOD"
info_key = "tombolo_mood"
type = "choice"
choices = ["calm", "wild"]
default = "calm"
interface = "windows"
field = "mood"
enum = "Mood"
flag = "--mood"
help.run = "The windows are in this mood: {choices}."
text = "the mood of windows"
"""

USER_OF_OPTION = r"""
#include <cstdio>
#include "runtime/options/options.h"

int main() {
  using namespace tombolo::runtime;
  Options options = read_environment();
  for (const std::string& complaint : options.complaints)
    std::printf("complaint %s\n", complaint.c_str());
  std::printf("%s\n", options.mood == Mood::wild ? "wild" : "calm");
  if (!apply_info(options, "tombolo_mood", "wild").ok()) return 1;
  std::printf("%s\n", options.mood == Mood::wild ? "wild" : "calm");
}
"""


def test_an_option_is_one_row_of_the_table(tree: Tree):
    table = tree.folder / "base/options.toml"
    table.write_text(table.read_text() + OPTION)
    program = tree.program(USER_OF_OPTION, *OPTIONS, "runtime/engines/engines.cpp")
    assert output(program) == ["calm", "wild"]
    assert output(program, TOMBOLO_MOOD="wild") == ["wild", "wild"]
    assert output(program, TOMBOLO_MOOD="mild")[0] == "complaint TOMBOLO_MOOD is 'mild'; it may be calm, wild"
    shown = " ".join(tree.run("cli/tombolo/__main__.py", "run", "--help").split())
    assert "The windows are in this mood: calm | wild. [default: TOMBOLO_MOOD's, else calm]" in shown
    tree.run("tools/option_table.py", "page")
    page = (tree.folder / "docs/settings.md").read_text()
    row = "| `TOMBOLO_MOOD` | `tombolo_mood` | `--mood` of `run` | `calm`, `wild` | `calm` | the mood of windows |"
    assert row in page.splitlines()


def test_the_command_sets_the_variable_of_a_new_option(tree: Tree):
    table = tree.folder / "base/options.toml"
    table.write_text(table.read_text() + OPTION)
    ask = "from tombolo.launch import Choice; print(Choice(mood='wild').environment()['TOMBOLO_MOOD'])"
    assert tree.run("-c", f"import sys; sys.path.insert(0, 'cli'); {ask}") == "wild\n"
