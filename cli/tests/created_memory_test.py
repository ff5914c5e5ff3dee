# SPDX-License-Identifier: Apache-2.0
"""Windows over the program's own memory, with that memory replaced by shared memory and without."""

from pathlib import Path

import pytest
from tombolo import compile, libraries, mpis, processes
from tombolo.errors import UserError
from tombolo.launch import Choice, job

SOURCE = Path(__file__).resolve().parents[2] / "mpi" / "windows" / "created_memory_check.c"


@pytest.mark.parametrize("key", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("machine", "remap", "mapped"),
    [("coherent", "1", "shared"), ("coherent", "0", "private"), ("flushed", "1", "private"), ("stale", "1", "private")],
)  # fmt: skip
def test_a_program_keeps_its_memory(key, machine, remap, mapped, tmp_path):
    try:
        mpi = mpis.need(key)
        program = compile.compiled(mpi, SOURCE, tmp_path)
    except UserError as error:
        pytest.skip(str(error))
    if libraries.find(mpi.kind) is None:
        pytest.skip("the libraries are not built: make native")
    start = job(mpi, 2, [str(program), mapped], Choice(machine), yields=True, extra={"TOMBOLO_REMAP": remap})
    outcome = processes.run(start, 120)
    assert "RESULT ok" in outcome.stdout, outcome.stdout + outcome.stderr[-2000:]
    assert outcome.status == 0
