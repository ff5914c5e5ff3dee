# SPDX-License-Identifier: Apache-2.0
"""When a program is compiled anew; the compiler copies its source."""

import os
from pathlib import Path

import pytest
from tombolo import compile
from tombolo.errors import UserError
from tombolo.mpis import Mpi

COMPILER = """#!/bin/bash
echo x >> "$(dirname "$0")/runs"
while [ $# -gt 0 ]; do case $1 in *.c) source=$1 ;; -o) shift; target=$1 ;; esac; shift; done
grep -q mistake "$source" && { echo "a.c:1: mistake" >&2; exit 1; }
cp "$source" "$target"
"""


@pytest.fixture
def mpi(tmp_path: Path) -> Mpi:
    wrapper = tmp_path / "mpicc"
    wrapper.write_text(COMPILER)
    wrapper.chmod(0o755)
    return Mpi("mpich", tmp_path / "mpiexec", wrapper, None)


def checkout(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "a.c").write_text(text)
    return folder / "a.c"


def runs(mpi: Mpi) -> int:
    return len((mpi.mpicc.parent / "runs").read_text().split())


def test_the_same_inputs_are_not_compiled_again(mpi, tmp_path):
    source = checkout(tmp_path / "first", "one")
    for _ in range(2):
        assert compile.compiled(mpi, source, tmp_path / "build").read_text() == "one"
    assert runs(mpi) == 1
    compile.compiled(mpi, source, tmp_path / "build", ["-pthread"])
    assert runs(mpi) == 2
    (tmp_path / "first" / "b.h").write_text("int x;")
    compile.compiled(mpi, source, tmp_path / "build", ["-pthread"])
    assert runs(mpi) == 3


def test_the_program_of_another_checkout_is_not_taken_though_it_is_newer(mpi, tmp_path):
    first, second = (checkout(tmp_path / name, name) for name in ("first", "second"))
    os.utime(second, (0, 0))
    assert compile.compiled(mpi, first, tmp_path / "build").read_text() == "first"
    assert compile.compiled(mpi, second, tmp_path / "build").read_text() == "second"


def test_a_mistake_is_shown_with_the_path_and_leaves_the_program_of_before(mpi, tmp_path):
    source = checkout(tmp_path / "first", "fine")
    program = compile.compiled(mpi, source, tmp_path / "build")
    (program.parent / "a.inputs").write_text("the user's")
    source.write_text("mistake")
    for _ in range(2):
        with pytest.raises(UserError, match="a.c does not compile with MPICH"):
            compile.compiled(mpi, source, tmp_path / "build")
        assert program.read_text() == "fine"
    source.write_text("fine")
    compile.compiled(mpi, source, tmp_path / "build")
    assert runs(mpi) == 3  # it is the one of before
    assert (program.parent / "a.inputs").read_text() == "the user's"
    assert sorted(path.name for path in program.parent.iterdir()) == [".a.inputs", "a", "a.inputs"]
