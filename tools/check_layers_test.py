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
    assert check_layers.check(root) == [
        'sync/lock.h:2: sync may not include backends ("backends/stale/stale.h")'
    ]


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


def test_system_includes_are_no_concern(tree):
    assert check_layers.check(tree("base/a.h", "#include <vector>\n")) == []


def test_a_circle_among_the_layers_is_an_error(tree):
    root = tree("layers.txt", "base: machine\nmachine: base\n")
    assert len(check_layers.check(root)) == 2


def test_the_folders_of_this_repository_form_no_circle():
    root = Path(check_layers.__file__).parent.parent
    assert check_layers.cycles(check_layers.read_layers((root / "layers.txt").read_text())) == []
