# SPDX-License-Identifier: Apache-2.0
"""A disk without room, for tests of files that a program writes at its end."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on it, with a file `trace.json` of before."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("needs to be allowed to mount a file system")
    try:
        (disk / "trace.json").write_text("of before")
        with pytest.raises(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1024))
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def expect_the_trace_of_before(disk: Path) -> None:
    assert (disk / "trace.json").read_text() == "of before"
    assert sorted(path.name for path in disk.iterdir()) == ["filler", "trace.json"]
