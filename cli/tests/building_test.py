# SPDX-License-Identifier: Apache-2.0
"""Missing parts of a checkout are built when a command needs them; `make` is a stand-in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tombolo import building, libraries, paths
from tombolo.commands import doctor
from tombolo.errors import UserError

CLI = Path(__file__).resolve().parents[1]
MAKES = """
echo compiling
mkdir -p build/release/mpi build/release/experiments
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/release/CMakeCache.txt
touch build/release/mpi/libtombolo_mpi_mpich.so
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
    assert made(checkout) == ["native NATIVE=tombolo_mpi_mpich"]
    said = capfd.readouterr()
    assert said.out == ""  # may be read by a program, as with `tombolo env`
    assert said.err.splitlines() == [
        "building libtombolo_mpi_mpich.so (make native: cmake, some minutes) ..."
    ]


def test_a_program_is_built_by_its_own_target(checkout):
    libraries.need_program("tombolo-scc")
    assert made(checkout) == ["scc"]


def test_a_build_that_fails_shows_the_end_of_its_output(checkout):
    make_that(checkout, FAILS)
    with pytest.raises(UserError) as error:
        libraries.need_program("tombolo-scc")
    first, *lines = str(error.value).splitlines()
    assert first.startswith("tombolo-scc cannot be built: `make scc` ended with status 2")
    assert len(lines) == building.LINES_SHOWN
    assert lines[-1] == "error: no such header" and "99" in lines


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


def test_an_installed_package_builds_nothing_and_says_how_to_get_the_experiments(checkout, tmp_path):
    package = tmp_path / "site" / "tombolo"
    shutil.copytree(CLI / "tombolo", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "lib").mkdir()
    env = {**os.environ, "PYTHONPATH": str(package.parent), "TOMBOLO_RESULTS": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "tombolo", "scc", "run", "gats"],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("tombolo: tombolo-scc is not in site/tombolo/lib: ")
    assert "TOMBOLO_WITH_SCC=1 pip install ." in ended.stderr
    assert not made(checkout)
