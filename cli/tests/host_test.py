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
    files = ["cpu.max"] if len(texts) < 2 else ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]
    in_groups(monkeypatch, tmp_path, "3:cpu:/\n0::/\n", dict(zip(files, texts, strict=False)))
    assert host.cores() == (expected or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("own", "texts", "expected"),
    [
        ("0::/pod/step\n", {"pod/step/cpu.max": "300000 100000\n"}, 3),
        ("0::/pod/step\n", {"pod/step/cpu.max": "max 100000\n", "pod/cpu.max": "200000 100000\n"}, 2),
        ("0::/pod/step\n", {"pod/step/cpu.max": "200000 100000\n", "pod/cpu.max": "300000 100000\n"}, 2),
        ("0::/pod/step\n", {"pod/step/cpu.max": "300000 100000\n", "cpu.max": "100000 100000\n"}, 1),
        ("0::/pod\n", {"pod/step/cpu.max": "1000 100000\n", "po/cpu.max": "1000 100000\n"}, 64),
        ("0::/..\n", {"cpu.max": "100000 100000\n"}, 1),
        (
            "5:memory:/other\n4:cpuacct,cpu:/job:a\n0::/\n",
            {
                "cpu/job:a/cpu.cfs_quota_us": "250000\n",
                "cpu/job:a/cpu.cfs_period_us": "100000\n",
                "cpu/other/cpu.cfs_quota_us": "100000\n",
                "cpu/other/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        ("no group\n", {"cpu.max": "100000 100000\n"}, 64),
        ("4:cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "1\n", "cpu/job/cpu.cfs_period_us": "1\n"}, 64),
    ],
)
def test_the_least_quota_counts_of_the_own_group_and_those_above_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str, texts: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    in_groups(monkeypatch, tmp_path, own, texts)
    assert host.cores() == expected


def test_a_host_that_tells_no_groups_has_no_quota(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_groups(monkeypatch, tmp_path, "", {"cpu.max": "1000 100000\n"})
    (tmp_path / "own").unlink()
    assert host.cores() == len(os.sched_getaffinity(0))


def in_groups(monkeypatch: pytest.MonkeyPatch, folder: Path, own: str, texts: dict[str, str]) -> None:
    """The lines of this process's groups, and texts of the groups' files."""
    (folder / "own").write_text(own)
    for name, text in texts.items():
        file = folder / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(host, "OWN_GROUPS", str(folder / "own"))
    monkeypatch.setattr(host, "GROUPS", str(folder / "groups"))
