# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import check_layers
import pytest

LAYERS = """
# a comment
base:
machine: base
backends: base machine
sync: base machine
"""


@pytest.fixture
def tree(tmp_path: Path):
    """A root with layers.txt; call it with a path and a text to add a file."""
    (tmp_path / "layers.txt").write_text(LAYERS)

    def add(name: str, text: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return tmp_path

    add("base/status.h")
    add("backends/stale/stale.h")
    return add


def test_an_include_of_a_lower_folder_is_fine(tree):
    root = tree("sync/lock.h", '#include "base/status.h"\n#include "sync/lock.h"\n')
    assert check_layers.check(root) == []


def test_an_include_of_a_folder_that_is_not_listed_is_named_with_its_line(tree):
    root = tree("sync/lock.h", '\n#include "backends/stale/stale.h"\n')
    assert check_layers.check(root) == ['sync/lock.h:2: sync may not include backends ("backends/stale/stale.h")']


@pytest.mark.parametrize("name", ["lock_test.cpp", "lock_bench.cpp", "test_all.h", "testing/a.h"])
def test_tests_may_name_a_backend(tree, name):
    root = tree(f"sync/{name}", '#include "backends/stale/stale.h"\n')
    assert check_layers.check(root) == []


def test_tests_may_not_include_upwards_otherwise(tree):
    tree("sync/lock.h")
    root = tree("base/a_test.cpp", '#include "sync/lock.h"\n')
    assert len(check_layers.check(root)) == 1


def test_an_include_that_is_not_written_from_the_root_is_an_error(tree):
    root = tree("base/a.h", '#include "status.h"\n')
    assert "not a file seen from the repository root" in check_layers.check(root)[0]


def test_a_header_that_is_made_of_the_table_of_options_has_its_place_in_the_layers(tree):
    tree("base/options.toml", '[interface.windows]\nheader = "backends/stale/made_options.h"\n')
    tree("backends/stale/a.h", '#include "base/option_table.h"\n#include "backends/stale/made_options.h"\n')
    assert check_layers.check(root := tree("sync/a.h")) == []
    tree("sync/a.h", '#include "backends/stale/made_options.h"\n')
    assert check_layers.check(root) == ['sync/a.h:1: sync may not include backends ("backends/stale/made_options.h")']


def test_system_includes_are_no_concern(tree):
    assert check_layers.check(tree("base/a.h", "#include <vector>\n")) == []


def test_a_circle_among_the_layers_is_an_error(tree):
    root = tree("layers.txt", "base: machine\nmachine: base\n")
    assert len(check_layers.check(root)) == 2


ROOMS = (
    LAYERS
    + """
sync/.:
sync/locks: sync/.
sync/barriers: sync/. sync/locks
"""
)


@pytest.fixture
def rooms(tree):
    """A room of three folders in order."""
    tree("layers.txt", ROOMS)
    tree("sync/word.h")
    tree("sync/locks/lock.h", '#include "sync/word.h"\n')
    tree("sync/barriers/barrier.h", '#include "sync/word.h"\n#include "sync/locks/lock.h"\n')
    return tree


def test_includes_between_the_folders_of_a_room_follow_its_lines(rooms):
    assert check_layers.check(rooms("base/a.h")) == []


@pytest.mark.parametrize(
    ("name", "included", "folders"),
    [
        ("sync/locks/up.h", "sync/barriers/barrier.h", ("sync/locks", "sync/barriers")),
        ("sync/up.h", "sync/locks/lock.h", ("sync/.", "sync/locks")),
    ],
)
def test_an_include_upwards_within_a_room_is_named(rooms, name, included, folders):
    root = rooms(name, f'#include "{included}"\n')
    assert check_layers.check(root) == [f'{name}:1: {folders[0]} may not include {folders[1]} ("{included}")']


@pytest.mark.parametrize("name", ["sync/locks/lock_test.cpp", "sync/locks/testing/a.h", "sync/locks/broken/b.h"])
def test_tests_and_twins_may_include_all_of_their_room(rooms, name):
    assert check_layers.check(rooms(name, '#include "sync/barriers/barrier.h"\n')) == []


def test_a_circle_within_a_room_is_an_error(rooms):
    root = rooms("layers.txt", ROOMS.replace("sync/locks: sync/.", "sync/locks: sync/. sync/barriers"))
    assert sorted(check_layers.check(root)) == [
        "layers.txt: sync/barriers may include itself in a circle",
        "layers.txt: sync/locks may include itself in a circle",
    ]


def test_a_folder_without_a_line_is_an_error(rooms):
    root = rooms("sync/epochs/epoch.h")
    assert check_layers.check(root) == ["layers.txt: sync/epochs has no line, and holds product files"]


def test_folders_of_folders_have_lines_of_their_own(rooms):
    rooms("layers.txt", ROOMS + "sync/locks/queues: sync/locks\n")
    root = rooms("sync/locks/queues/queue.h", '#include "sync/locks/lock.h"\n#include "sync/word.h"\n')
    assert check_layers.check(root) == [
        'sync/locks/queues/queue.h:2: sync/locks/queues may not include sync/. ("sync/word.h")'
    ]


def test_a_line_that_lists_an_unknown_folder_is_an_error(rooms):
    root = rooms("layers.txt", ROOMS.replace("sync/. sync/locks", "sync/. sync/locks sync/gone"))
    assert check_layers.check(root) == ["layers.txt: sync/barriers lists sync/gone, which has no line in sync"]


def test_a_folder_with_too_many_files_is_an_error(rooms):
    for number in range(check_layers.MOST_FILES - 1):  # one is there
        root = rooms(f"sync/locks/lock{number}.h")
    rooms("sync/locks/more_test.cpp")  # a test does not count
    assert check_layers.check(root) == []
    rooms("sync/locks/one_more.h")
    assert check_layers.check(root) == ["sync/locks: 31 files of the product; 30 at most: divide it"]


@pytest.mark.parametrize("how", ["import b", "from b import x", "def f():\n    import b"])
def test_modules_that_import_each_other_are_errors(tree, how):
    tree("tools/a.py", how)
    tree("tools/b.py", "import a")
    root = tree("tools/c.py", "import a")
    assert check_layers.check(root) == [
        "tools/a.py: imports itself in a circle",
        "tools/b.py: imports itself in a circle",
    ]


def test_modules_of_a_package_are_told_apart(tree):
    tree("cli/tombolo/__init__.py")
    tree("cli/tombolo/one.py", "from tombolo import two")
    root = tree("cli/tombolo/two.py", "import json")
    assert check_layers.check(root) == []


def test_this_repository_is_in_order():
    assert check_layers.check(Path(check_layers.__file__).parent.parent) == []
