# SPDX-License-Identifier: Apache-2.0
"""An installed package finds its libraries, and says how to get the parts that are left out of it. The package
itself is tried by tools/check_package.py."""

import sys
import tomllib
from pathlib import Path

import pytest
from tombolo import (
    compilers,
    dsm,
    dsm_atomics,
    dsm_pthreads,
    hints,
    libraries,
    mpis,
    paths,
    settings,
    svp,
    svp_compile,
)  # fmt: skip
from tombolo.app import made
from tombolo.commands import doctor
from tombolo.errors import UserError
from tombolo.suite import petsc
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """The folder of an installed package's libraries, which is empty."""
    monkeypatch.delenv("TOMBOLO_LIB_DIR", raising=False)
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path)
    folder = tmp_path / "lib"
    folder.mkdir()
    return folder


def test_a_library_need_not_be_executable_but_a_program_must(package):
    for name in (dsm.LIBRARY, dsm_pthreads.LIBRARY, svp.ARCHIVE, dsm.LAUNCHER):
        (package / name).touch(mode=0o644)
    assert libraries.need_program(dsm_pthreads.LIBRARY) == package / dsm_pthreads.LIBRARY
    assert libraries.find_program(dsm.LIBRARY) and libraries.find_program(svp.ARCHIVE)
    assert libraries.find_program(dsm.LAUNCHER) is None


@pytest.mark.parametrize("llvm", [True, False])
def test_without_the_plugin_it_says_with_what_to_install_it_again(package, monkeypatch, llvm):
    monkeypatch.setattr(compilers, "has_llvm", lambda: llvm)
    with pytest.raises(UserError, match="the plugin of clang is not in .*/lib: ") as error:
        compilers.need_plugin()
    assert str(error.value).endswith(hints.COMPILER_OF_PACKAGE)
    assert hints.COMPILER_OF_PACKAGE.commands == ("apt-get install clang llvm-dev", "pip install .")
    (row,) = [found for found in doctor.findings() if found.about == "tombolo dsm cc"]
    assert (row.state, row.hint) == ("no", hints.COMPILER_OF_PACKAGE)


def test_without_families_it_says_with_what_to_install_them_again(package):
    for ask in (svp.flags, lambda: svp.command(2, ["program"])):
        with pytest.raises(UserError, match="is not in .*apt-get install libboost-context-dev.*pip install"):
            (package.parent / "include/svp").mkdir(parents=True, exist_ok=True)
            (package.parent / "include/svp/svp.h").touch()
            ask()


def test_a_package_that_lost_a_library_is_called_damaged(package):
    for ask in (lambda: libraries.need("mpich"), dsm_pthreads.library):
        with pytest.raises(UserError, match="is not in .*damaged.*: pip install ."):
            ask()


def test_doctor_asks_for_no_build_tools(package):
    assert not [found for found in doctor.findings() if found.hint == hints.TOOLS or found.about == "build tools"]


def test_no_remedy_of_a_package_is_a_target_of_make(package, monkeypatch):
    monkeypatch.setattr(mpis, "find", lambda _: None)
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    monkeypatch.setattr(petsc, "find", lambda: None)
    for module in ("tombolo.machine_code", "tombolo.svp_language.translate"):
        monkeypatch.setitem(sys.modules, module, None)
    asked = (
        lambda: mpis.need("mpich"),
        petsc.need,
        lambda: list(dsm_atomics._look(package)),
        lambda: svp_compile.translated(svp_compile.Request(), package),
    )
    remedies = [str(found.hint) for found in doctor.findings()]
    for ask in asked:
        with pytest.raises(UserError) as lack:
            ask()
        remedies.append(str(lack.value))
    assert sum("pip install" in remedy for remedy in remedies) > len(asked)
    assert not [remedy for remedy in remedies if "make " in remedy]


@pytest.mark.parametrize("words", ["bench one-sided", "bench curves", "bench starvation", "demo"])
def test_a_measurement_that_needs_sources_is_refused_before_it_begins(package, monkeypatch, words):
    monkeypatch.setattr(settings, "choices", lambda _: ("coherent",))
    monkeypatch.setattr(libraries, "refresh", lambda *_: pytest.fail("it has begun"))
    result = CliRunner().invoke(made(), words.split())
    assert str(result.exception) == "the benchmarks are in the source tree; run this from a checkout"
    assert result.output == ""


def test_a_user_without_a_home_folder_is_told_of_the_setting(package, monkeypatch):
    monkeypatch.delenv("TOMBOLO_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(UserError, match="TOMBOLO_HOME"):
        paths.home()
    monkeypatch.setenv("TOMBOLO_HOME", str(package))
    assert paths.home() == package


def test_the_package_needs_what_the_checkout_installs():
    listed = (ROOT / "requirements/cli.txt").read_text().splitlines()[1:]
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert needed == listed
    assert all("<" in requirement for requirement in needed)
