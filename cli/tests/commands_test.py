# SPDX-License-Identifier: Apache-2.0
import errno
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import tombolo
from tombolo import compilers, mpis, probes, svp_compile
from tombolo.app import COMMANDS, made
from tombolo.commands import conformance, demo, doctor
from tombolo.errors import UserError
from tombolo.processes import Outcome
from tombolo.suite.runner import Setting
from typer.testing import CliRunner


def test_doctor_has_a_hint_for_each_lack():
    for found in doctor.findings():
        assert found.state in doctor.MARKS
        assert found.state == "yes" or found.hint


@pytest.mark.skipif(mpis.find("mpich") is None or mpis.find("mpich").mpicc is None, reason="needs MPICH")
def test_doctor_says_no_more_than_partly_to_an_mpi_without_its_header(monkeypatch, tmp_path):
    there = mpis.need("mpich")
    assert mpis.lack_of_headers(there) == ""
    wrapper = tmp_path / "mpicc"
    for does, lack in (
        ('exec cc "$@"', "its mpi.h is not here"),
        ("echo no compiler >&2; exit 1", f"{wrapper}: no compiler"),
    ):
        wrapper.write_text(f"#!/bin/sh\n{does}\n")
        wrapper.chmod(0o755)
        headless = replace(there, mpicc=wrapper)
        monkeypatch.setattr(mpis, "find", lambda key, found=headless: found if key == "mpich" else None)
        (row,) = rows_about("mpich")
        assert row.state == "partly" and row.hint == mpis.hint("mpich")
        assert row.what == f"{there.label} runs programs, and compiles none: {lack}"


def test_probes_answer_and_leave_no_process():
    for probe in (probes.memfd, probes.process_vm, probes.futex, probes.pidfd):
        assert probe() in (True, False)


def test_the_probe_for_write_protection_gives_a_reason_or_nothing_and_leaves_no_descriptor():
    before = len(os.listdir("/proc/self/fd"))
    assert isinstance(probes.write_watch(), str)
    assert isinstance(probes.own_faults(), str)
    assert len(os.listdir("/proc/self/fd")) == before


def test_doctor_names_the_lack_for_write_protection(monkeypatch):
    for lack, state in (("", "yes"), ("userfaultfd: Operation not permitted", "no")):
        monkeypatch.setattr(probes, "write_watch", lambda lack=lack: lack)
        rows = [f for f in doctor.findings() if f.about == "asynchronous write protection"]
        assert [row.state for row in rows] == [state]
        assert lack in rows[0].what
        assert state == "yes" or "6.7" in rows[0].hint


def rows_about(name: str) -> list[doctor.Finding]:
    return [found for found in doctor.findings() if found.about == name]


def test_doctor_says_how_page_caches_close_their_pages(monkeypatch):
    monkeypatch.setattr(probes, "own_faults", lambda: "")
    (row,) = rows_about("own page faults")
    assert row.state == "yes" and "written pages" in row.what
    assert [row.state for row in rows_about("mappings of a process")] == ["yes"]
    monkeypatch.setattr(probes, "own_faults", lambda: "userfaultfd: Operation not permitted")
    (row,) = rows_about("own page faults")
    assert row.state == "partly" and "mprotect; userfaultfd: Operation" in row.what
    assert "written pages" in row.what


def test_doctor_names_what_threads_in_processes_lack(monkeypatch):
    abouts = ("own system calls caught", "fixed addresses", "decoder")
    monkeypatch.setattr(probes, "caught_calls", lambda: "")
    monkeypatch.setattr(probes, "fixed_addresses", lambda: "")
    monkeypatch.setattr(doctor, "find_spec", lambda name: name)
    rows = [row for about in abouts for row in rows_about(about)]
    assert [(row.state, row.hint) for row in rows] == [("yes", "")] * 3
    monkeypatch.setattr(probes, "caught_calls", lambda: "Invalid argument")
    monkeypatch.setattr(probes, "fixed_addresses", lambda: "Operation not permitted")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    rows = [row for about in abouts for row in rows_about(about)]
    assert [row.state for row in rows] == ["no"] * 3
    assert all(row.hint for row in rows)
    assert rows[0].what.endswith(": Invalid argument") and rows[1].what.endswith(": Operation not permitted")


def test_doctor_tries_what_threads_in_processes_need():
    assert probes.caught_calls() in ("", "Invalid argument")
    randomized = Path("/proc/self/personality").read_text()
    assert isinstance(probes.fixed_addresses(), str)
    assert Path("/proc/self/personality").read_text() == randomized


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        ({"vm/max_map_count": 65530, "vm/overcommit_memory": 2}, ["partly", "partly"]),
        ({"vm/max_map_count": 65531, "vm/overcommit_memory": 1}, ["yes", "yes"]),
        ({}, []),
    ],
)
def test_doctor_names_settings_of_the_kernel_that_are_too_small(monkeypatch, settings, states):
    monkeypatch.setattr(probes, "own_faults", lambda: "userfaultfd: Operation not permitted")
    monkeypatch.setattr(probes, "kernel_setting", settings.get)
    rows = rows_about("mappings of a process") + rows_about("memory beyond what is there")
    assert [row.state for row in rows] == states
    assert all(bool(row.hint) == (row.state == "partly") for row in rows)


def test_a_setting_of_the_kernel_is_a_number_or_nothing():
    assert probes.kernel_setting("vm/max_map_count") > 0
    assert probes.kernel_setting("kernel/ostype") is None
    assert probes.kernel_setting("vm/there_is_none") is None


def test_doctor_says_whether_programs_can_be_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(compilers, "find_plugin", lambda: None)
    assert [row.state for row in rows_about("tombolo dsm cc")] == ["no"]
    monkeypatch.setattr(compilers, "find_plugin", lambda: tmp_path / "tombolo_stores-1.so")
    (row,) = rows_about("tombolo dsm cc")
    assert row.state == "no" and "no clang of version 1" in row.what


def test_an_unknown_processor_has_no_write_protection(monkeypatch):
    monkeypatch.setattr(probes, "USERFAULTFD_NUMBERS", {})
    assert probes.write_watch() == probes.own_faults() == "unknown processor"


def test_a_kernel_without_userfaultfd_is_named(monkeypatch):
    monkeypatch.setattr(probes, "USERFAULTFD_NUMBERS", {platform.machine(): 100_000})
    lack = "userfaultfd: Function not implemented"
    assert probes.write_watch() == probes.own_faults() == lack


def test_every_command_has_help_and_an_unknown_one_is_refused():
    shown = CliRunner().invoke(made(), ["--help"]).output
    for name in COMMANDS:
        assert name in shown
        assert CliRunner().invoke(made((name,)), [name, "--help"]).exit_code == 0
    assert CliRunner().invoke(made(), ["nothing"]).exit_code == 2


@pytest.mark.parametrize(
    ("raised", "status", "told"),
    [
        (UserError("that is wrong"), 2, "name: that is wrong\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(errno.ENOSPC, "No space", "/f"), 2, "name: /f cannot be written: No space\n"),
    ],
)
def test_compilers_end_as_the_other_commands(monkeypatch, capsys, raised, status, told):
    def interrupted(*_) -> None:
        raise raised

    monkeypatch.setattr(compilers, "command_line", interrupted)
    monkeypatch.setattr(svp_compile, "compile_all", interrupted)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    for main in (lambda: compilers.main("clang", "name", ["a.c"]), lambda: svp_compile.main("name", ["a.c"])):
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code, capsys.readouterr().err) == (status, told)


def test_a_command_is_loaded_alone():
    code = """if True:
        import sys
        from tombolo.app import COMMANDS, main
        sys.argv = ["tombolo", "svp", "--help"]
        try:
            main()
        finally:
            print(*(name for name in COMMANDS if f"tombolo.commands.{name}" in sys.modules))
    """
    environment = os.environ | {"PYTHONPATH": str(Path(tombolo.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines()[-1] == "svp", done.stderr


def test_run_passes_options_after_the_program_to_it(tmp_path):
    result = CliRunner().invoke(
        made(), ["run", "--stock", "--show", "--mpi", "mpich", "-n", "3", "echo", "-n", "--seed", "5"]
    )
    if isinstance(result.exception, UserError):
        pytest.skip(str(result.exception))
    assert result.output.split()[-4:] == ["echo", "-n", "--seed", "5"]


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        (["--machine", "stale"], "", "fail"),
        (["--machine", "stale", "--on-findings", "report"], "", "report"),
        (["--machine", "stale"], "report", None),  # as the environment says
        ([], "", None),
    ],
)
def test_run_on_stale_fails_on_findings_unless_told(monkeypatch, options, environment, expected):
    monkeypatch.setenv("TOMBOLO_ON_FINDINGS", environment)
    result = CliRunner().invoke(made(), ["run", "--show", "--mpi", "mpich", *options, "echo"])
    if isinstance(result.exception, UserError):
        pytest.skip(str(result.exception))
    words = result.output.split()
    told = words[words.index("TOMBOLO_ON_FINDINGS") + 1] if "TOMBOLO_ON_FINDINGS" in words else None
    assert told == expected


def test_an_unknown_machine_is_refused():
    result = CliRunner().invoke(made(), ["run", "--machine", "wet", "echo"])
    assert isinstance(result.exception, UserError)


def test_conformance_runs_stock_coherent_and_stale_with_each_seed_unless_told():
    settings = conformance.settings_for(None, (1, 2), None)
    assert [s.label for s in settings] == ["stock", "coherent", "stale seed 1", "stale seed 2"]
    assert conformance.settings_for(["stale"], (4,), None) == [Setting("stale", 4)]
    assert conformance.settings_for(["stale"], (4,), True)[0] == Setting("stock")
    with pytest.raises(UserError):
        conformance.settings_for(["wet"], (1,), None)


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (Outcome(0, "RESULT ok ranks=2 seconds=1.5\n", "", 2), ("ok", 1.5)),
        (Outcome(1, "RESULT wrong seconds=1.5\n", "", 2), ("wrong", 1.5)),
        (Outcome(3, "RESULT ok seconds=1.5\n", "", 2), ("exit 3", 1.5)),
        (Outcome(1, "", "boom", 2), ("exit 1, no result", None)),
        (Outcome(None, "", "", 2), ("time limit", None)),
    ],
)
def test_an_example_is_judged_by_its_word_and_its_status(outcome, result):
    assert demo.judge(outcome) == result
