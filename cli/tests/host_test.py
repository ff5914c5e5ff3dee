# SPDX-License-Identifier: Apache-2.0
"""The processors that commands count on: those of the host, or of a container's quota."""

import os
from pathlib import Path

import pytest

from tombolo import host


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["max 100000\n"], None),
        (["100000 100000\n"], 1),
        (["1000 100000\n"], 1),
        (["99900000 100000\n"], None),
        (["50000\n", "100000\n"], 1),
        (["-1\n", "100000\n"], None),
        ([], None),
    ],
)
def test_cores_are_as_many_as_a_quota_keeps_busy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: list[str], expected: int | None
) -> None:
    files = [tmp_path / str(number) for number in range(max(1, len(texts)))]
    for file, text in zip(files, texts, strict=False):
        file.write_text(text)
    monkeypatch.setattr(host, "CONTAINER_TIME", ([str(file) for file in files],))
    assert host.cores() == (expected or len(os.sched_getaffinity(0)))
