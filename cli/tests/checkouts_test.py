# SPDX-License-Identifier: Apache-2.0
"""Two checkouts that share one environment: each runs its own code, and looks at its own build."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tombolo import paths

ROOT = Path(__file__).resolve().parents[2]
FILES = ("tombolo", "Makefile", "CMakeLists.txt", "CMakePresets.json", "base/options.toml", "cli/tombolo")


def copied(folder: Path, version: str) -> Path:
    """A checkout whose command says that version."""
    for name in FILES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, target)
    package = folder / "cli/tombolo/__init__.py"
    package.write_text(f'__version__ = "{version}"\n')
    return folder


@pytest.fixture
def checkouts(tmp_path: Path) -> tuple[Path, Path]:
    """Two checkouts, with one linked environment in which an older `make env` named the first."""
    first, second = copied(tmp_path / "first", "1"), copied(tmp_path / "second", "2")
    shared = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", shared / "cli"], check=True)
    (site,) = (shared / "cli").glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "tombolo.pth").write_text(f"{first}/cli\n")
    (shared / "cli.stamp").touch()
    for each in (first, second):
        (each / ".env").symlink_to(shared)
    return first, second


def version(command: list, folder: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_checkout_runs_its_own_code_from_wherever_it_is_called(checkouts):
    first, second = checkouts
    for folder in (first, second, first / "cli", second / "cli", Path("/")):
        assert version([first / "tombolo", "--version"], folder) == "tombolo 1"
        assert version([second / "tombolo", "--version"], folder) == "tombolo 2"


def test_a_path_of_the_environment_does_not_change_that(checkouts):
    first, second = checkouts
    told = version([second / "tombolo", "--version"], second, PYTHONPATH=f"{first}/cli")
    assert told == "tombolo 2"


def test_make_runs_the_code_of_its_own_folder(checkouts):
    rule = "probe: ; @$(TOMBOLO) --version"
    for number, folder in enumerate(checkouts, 1):
        command = ["make", "-C", folder, "--no-print-directory", "--eval", rule, "probe"]
        assert version(command, Path("/")) == f"tombolo {number}"


def test_pytest_imports_the_package_beside_its_tests():
    assert paths.PACKAGE == ROOT / "cli" / "tombolo"


def configured(build: Path, sources: Path) -> None:
    build.mkdir(parents=True, exist_ok=True)
    (build / "CMakeCache.txt").write_text(f"X:BOOL=ON\nCMAKE_HOME_DIRECTORY:INTERNAL={sources}\n")
    (build / "build.ninja").touch()


def configure(folder: Path) -> str:
    """Has make configure the folder, with a stand-in for CMake; returns its messages."""
    tools = folder.parent / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "cmake").write_text("#!/bin/sh\nmkdir -p build/release; touch build/release/build.ninja")
    (tools / "cmake").chmod(0o755)
    done = subprocess.run(
        ["make", "--assume-old=env", "build/release/build.ninja"],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = re.sub(r"^make\[\d+\]", "make", done.stdout.strip())  # where a make runs the tests
    assert told in ("", "make: 'build/release/build.ninja' is up to date.")
    return done.stderr


def test_make_starts_anew_in_a_build_folder_that_was_copied(checkouts):
    first, second = checkouts
    configured(second / "build/release", first)
    stale = second / "build/release/mpi/libtombolo_mpi_mpich.so"
    stale.parent.mkdir()
    stale.touch()
    assert f"build/release was made from the sources in {first}" in configure(second)
    assert (second / "build/release/build.ninja").exists()
    assert not stale.exists()


def test_make_leaves_a_linked_build_folder_to_its_checkout(checkouts):
    first, second = checkouts
    configured(first / "build/release", first)
    (second / "build").symlink_to(first / "build")
    assert f"made from the sources in {first}" in configure(second)
    assert (first / "build/release/CMakeCache.txt").exists()
    assert not (second / "build").is_symlink() and (second / "build/release/build.ninja").exists()


def test_make_keeps_its_own_build_folder_under_whatever_name(checkouts, tmp_path):
    _, second = checkouts
    (tmp_path / "link").symlink_to(second)
    for name in (second, tmp_path / "link"):
        configured(second / "build/release", name)
        assert configure(second) == ""
        assert (second / "build/release/CMakeCache.txt").exists()


def test_the_command_takes_nothing_from_another_checkouts_build(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    configured(first / "build/release", first)
    second.mkdir()
    (second / "build").symlink_to(first / "build")
    monkeypatch.setattr(paths, "checkout", lambda: first)
    assert paths.built() == first / "build/release"
    monkeypatch.setattr(paths, "checkout", lambda: second)
    assert paths.built() is None
    configured(first / "build/release", tmp_path / "removed")
    assert paths.built() is None


def test_a_path_is_shown_from_where_the_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert paths.shown(tmp_path / "a/b") == "a/b"
    assert paths.shown(Path("/usr/lib")) == "/usr/lib"
    monkeypatch.chdir("/")
    assert paths.shown(Path("/usr/lib")) == "/usr/lib"
