# SPDX-License-Identifier: Apache-2.0
"""Missing parts of a checkout are built when a command needs them; `make` is a stand-in."""

import fcntl
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import building, host, libraries, paths
from tombolo.commands import doctor
from tombolo.errors import UserError

CLI = Path(__file__).resolve().parents[1]
MAKES = """
echo compiling
mkdir -p build/release/mpi build/release/experiments
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/release/CMakeCache.txt
touch build/release/mpi/libtombolo_mpi_mpich.so build/release/mpi/libtombolo_mpi_openmpi.so
printf '#!/bin/sh\\n' > build/release/experiments/tombolo-scc
chmod +x build/release/experiments/tombolo-scc
"""
FAILS = "seq 100; echo 'error: no such header' >&2; exit 2"


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("TOMBOLO_LIB_DIR", raising=False)
    monkeypatch.setattr(paths, "checkout", lambda: root)
    make_that(root, MAKES)
    return root


def make_that(root: Path, does: str) -> None:
    """A `make` that notes its arguments in the file `made`, and then does that in the checkout."""
    script = root.parent / "bin" / "make"
    script.write_text(f'#!/bin/bash\ncd "$2" && shift 2 && echo "$@" >> made\n{does}\n')
    script.chmod(0o755)


def made(root: Path) -> list[str]:
    return (root / "made").read_text().splitlines() if (root / "made").exists() else []


def test_a_missing_part_is_built_once_and_said_so_in_one_line(checkout, capfd):
    assert libraries.need("mpich") == checkout / "build/release/mpi/libtombolo_mpi_mpich.so"
    assert libraries.need_program("tombolo-scc").name == "tombolo-scc"
    libraries.need("mpich")
    assert made(checkout) == ["native QUIET= NATIVE=tombolo_mpi_mpich"]
    said = capfd.readouterr()
    assert said.out == ""  # may be read by a program, as with `tombolo env`
    minutes = -(-building.PROCESSOR_MINUTES // host.cores())
    assert said.err.splitlines() == [
        "building libtombolo_mpi_mpich.so (make native: the first time, up to about "
        f"{minutes} minutes on {host.cores()} processors) ..."
    ]
    (checkout / "build/release/build.ninja").touch()
    (checkout / "build/release/mpi/libtombolo_mpi_openmpi.so").unlink()
    libraries.need("openmpi")
    assert capfd.readouterr().err == "building libtombolo_mpi_openmpi.so (make native: some minutes) ...\n"


def test_a_program_is_built_by_its_own_target(checkout):
    libraries.need_program("tombolo-scc")
    assert made(checkout) == ["scc QUIET="]


def test_a_build_that_fails_shows_the_end_of_its_output(checkout):
    make_that(checkout, FAILS)
    with pytest.raises(UserError) as error:
        libraries.need_program("tombolo-scc")
    first, *lines = str(error.value).splitlines()
    assert first.startswith("tombolo-scc cannot be built: `make scc` ended with status 2")
    assert len(lines) == building.LINES_SHOWN
    assert lines[-1] == "error: no such header" and "99" in lines


STEPS = "echo '[1/40] Building a'; echo a.cpp: warning; echo '[40/40] Linking b'; echo ${NINJA_STATUS-none} >> made"


def test_the_steps_are_shown_on_one_line_of_a_terminal(checkout):
    make_that(checkout, STEPS + MAKES)
    ask = (
        "from pathlib import Path; from tombolo import libraries, paths; "
        f"paths.checkout = lambda: Path({str(checkout)!r})\nlibraries.need('mpich')"
    )
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(CLI), "NINJA_STATUS": "other"}
    with os.fdopen(master, "rb", buffering=0) as terminal:
        subprocess.run([sys.executable, "-c", ask], env=env, stderr=slave, check=True)
        os.close(slave)
        text = terminal.read(4096).decode()
    first, steps = text.split("\r\n")
    assert first.startswith("building libtombolo_mpi_mpich.so")
    assert steps.split("\r")[1:] == [
        "[1/40] libtombolo_mpi_mpich.so\x1b[K", "[40/40] libtombolo_mpi_mpich.so\x1b[K", "\x1b[K",
    ]  # fmt: skip
    assert made(checkout)[1] == building.NINJA_STATUS.strip()


def test_elsewhere_a_line_now_and_then_tells_how_far_it_is(checkout, capfd, monkeypatch):
    clock = iter(range(0, 1000, 12))
    monkeypatch.setattr(building.time, "monotonic", lambda: next(clock))
    make_that(checkout, 'for i in 1 2 10 20 30; do echo "[$i/40] Building"; done' + MAKES)
    libraries.need("mpich")
    assert capfd.readouterr().err.splitlines()[1:] == [
        "[2/40] libtombolo_mpi_mpich.so, about 8 minutes left",
        "[20/40] libtombolo_mpi_mpich.so, about 48 s left",
    ]


def test_what_is_up_to_date_is_asked_of_make_and_not_spoken_of(checkout, capfd):
    make_that(checkout, "echo 'ninja: no work to do.'")
    libraries.refresh("native", "svp-bench")
    assert made(checkout) == ["native QUIET=", "svp-bench QUIET="]
    assert capfd.readouterr().err == ""
    make_that(checkout, "echo '[1/1] Linking'")
    libraries.refresh("native")
    assert capfd.readouterr().err.startswith("building what is measured (make native: ")
    make_that(checkout, FAILS)
    with pytest.raises(UserError, match="what is measured cannot be built"):
        libraries.refresh("native")


def test_the_makefile_shows_the_steps_where_it_is_told_to():
    told = ["make", "-C", CLI.parent, "-n", "native", "-o", "build/release/build.ninja"]
    for settings, quiet in (([], True), (["QUIET="], False)):
        done = subprocess.run([*told, *settings], capture_output=True, text=True, check=True)
        assert (" -- --quiet" in done.stdout) == quiet, done.stdout


def test_a_build_that_makes_nothing_is_an_error(checkout):
    make_that(checkout, "")
    with pytest.raises(UserError, match="tombolo-scc is not there although"):
        libraries.need_program("tombolo-scc")


def test_without_make_the_command_says_so(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    with pytest.raises(UserError, match="cannot be built: make: No such file"):
        libraries.need("mpich")


def test_options_of_an_outer_make_do_not_reach_the_build(checkout, monkeypatch):
    monkeypatch.setenv("MAKEFLAGS", "n -- PRESET=asan")
    make_that(checkout, 'echo "${MAKEFLAGS-none}" >> made' + MAKES)
    libraries.need("mpich")
    assert made(checkout)[1] == "none"


def test_nothing_is_built_into_a_folder_that_is_named(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path / "lib"))
    with pytest.raises(UserError, match="mpich.so is not in .*lib: .*TOMBOLO_LIB_DIR names"):
        libraries.need("mpich")
    with pytest.raises(UserError, match="tombolo-scc is not in .*TOMBOLO_LIB_DIR names"):
        libraries.need_program("tombolo-scc")
    assert not made(checkout)


def test_doctor_builds_nothing(checkout):
    rows = {found.about: found for found in doctor.findings()}
    assert rows["libtombolo_mpi_mpich.so"].state == rows["tombolo-scc"].state == "no"
    assert not made(checkout) and not (checkout / "build").exists()


def test_two_commands_build_one_after_the_other(checkout):
    """The second finds the products of the first."""
    make_that(checkout, "sleep 0.5" + MAKES)
    ask = (
        "from pathlib import Path; from tombolo import libraries, paths; "
        f"paths.checkout = lambda: Path({str(checkout)!r})\nlibraries.need('mpich')"
    )
    env = {**os.environ, "PYTHONPATH": str(CLI)}
    running = [subprocess.Popen([sys.executable, "-c", ask], env=env) for _ in range(2)]
    assert [each.wait(30) for each in running] == [0, 0]
    assert len(made(checkout)) == 1


def test_a_wait_for_another_command_is_told_before_it_begins(checkout, capfd, monkeypatch):
    (checkout / "build").mkdir()
    other = (checkout / "build/.lock").open("w")
    really_lock = fcntl.flock
    really_lock(other, fcntl.LOCK_EX)
    told = []

    def lock(file, how: int) -> None:
        if not how & fcntl.LOCK_NB:  # the other command ends
            told.append(capfd.readouterr().err)
            other.close()
        really_lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    for _ in range(2):
        with building.alone(checkout):
            assert told == ["tombolo: waits for another command that builds in this checkout\n"]


def test_an_installed_package_builds_nothing_and_says_how_to_get_the_experiments(checkout, tmp_path):
    package = tmp_path / "site" / "tombolo"
    shutil.copytree(CLI / "tombolo", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "lib").mkdir()
    shutil.copy(CLI.parent / "base/options.toml", package / "data")  # as cmake/install.cmake does
    env = {**os.environ, "PYTHONPATH": str(package.parent), "TOMBOLO_RESULTS": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "tombolo", "scc", "run", "gats"],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("tombolo: tombolo-scc is not in site/tombolo/lib: ")
    assert "TOMBOLO_WITH_SCC=1 pip install ." in ended.stderr
    assert not made(checkout)
