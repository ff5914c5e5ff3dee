# SPDX-License-Identifier: Apache-2.0
"""The command line refuses much: options that nothing would read, numbers and words that mean nothing,
programs of another kind. Each is refused by name before anything is built."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from tombolo import building, host, libraries, mpis, options, paths, programs, records, settings
from tombolo.app import made
from tombolo.commands import svp as svp_command
from tombolo.errors import UserError
from typer.testing import CliRunner

MPI = "mpich"


class Built(Exception):
    """Something would have been built, or started."""


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    for name in (settings.MACHINE, "TOMBOLO_ON_FINDINGS", "TOMBOLO_DSM_TRANSPORT", "TOMBOLO_SVP_TRANSPORT"):
        monkeypatch.delenv(name, raising=False)
    for name in options.OF_OTHER_HOSTS:
        monkeypatch.delenv(name, raising=False)


REALLY_START = programs.start


@pytest.fixture(autouse=True)
def no_program_in_the_place_of_the_tests(monkeypatch):
    """One that is not refused would replace this process, and end with success."""

    def start(argv: list[str], *_, **__) -> None:
        raise Built(f"started: {argv}")

    monkeypatch.setattr(programs, "start", start)


@pytest.fixture
def unbuilt(monkeypatch):
    """A checkout in which nothing is built, and nothing shall be."""

    def build(what: str, *_, **__) -> None:
        raise Built(what)

    monkeypatch.delenv("TOMBOLO_LIB_DIR", raising=False)
    monkeypatch.setattr(paths, "built", lambda: None)
    monkeypatch.setattr(building, "build", build)


@pytest.fixture
def started(monkeypatch) -> list[tuple[list[str], dict[str, str]]]:
    """The command lines and environments of the programs that would have been started."""
    all_of_them: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(programs, "start", lambda argv, env, file=None: all_of_them.append((argv, env)))
    return all_of_them


def compiled(folder: Path, name: str, text: str = "int main(void) { return 0; }", compiler: str = "cc") -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run([compiler, "-pthread", source, "-o", folder / name], check=True)
    return folder / name


@pytest.fixture
def program(tmp_path) -> Path:
    return compiled(tmp_path, "program")


def told(*words: object) -> str:
    """The sentence of a refusal."""
    result = CliRunner().invoke(made((str(words[0]),)), [str(word) for word in words])
    if isinstance(result.exception, SystemExit):
        assert result.exit_code == 2, result.output
        return " ".join(result.output.split())
    assert isinstance(result.exception, UserError), result.exception or result.output
    return str(result.exception)


# --- The help -------------------------------------------------------------------------------------


def commands(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *names, name)


ALL = dict(commands(typer.main.get_command(made())))


@pytest.mark.parametrize("names", [names for names in ALL if hasattr(ALL[names], "commands")], ids=" ".join)
def test_the_list_of_commands_fits_a_terminal(names):
    shown = CliRunner().invoke(made(), [*names, "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0 and "..." not in shown.output.partition("Commands:")[2]


def helps(command) -> list[str]:
    texts = (getattr(each, "help", None) for each in command.params)
    return [text for text in texts if text and text != "Show this message and exit."]


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("names", ALL, ids=lambda names: " ".join(names) or "tombolo")
def test_the_help_shows_the_whole_text_of_every_option(names):
    shown = CliRunner().invoke(made(), [*names, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    for text in helps(ALL[names]):
        assert squeezed(text) in squeezed(shown.output)


@pytest.mark.parametrize("names", ALL, ids=lambda names: " ".join(names) or "tombolo")
def test_the_help_of_an_option_is_a_sentence_and_names_what_may_be_chosen(names):
    verbs = re.compile(r"\b(is|are|has|have|runs?|takes?|draws?|evicts?|maps?|starts?|exits?|counts?|holds?|travel"
                       r"|caches|share|gets?|asks|writes|tells|may|shall|reads)\b")  # fmt: skip
    for text in helps(ALL[names]):
        sentence = re.sub(r"\s*\[default: [^]]*\]", "", text)
        assert sentence[0].isupper() and sentence.endswith("."), text
        assert verbs.search(sentence), text
    for option in (each for each in ALL[names].params if each.name == "machine"):
        assert " | ".join(settings.machines()) in option.help
    if names in (("dsm", "run"), ("svp", "run")):
        (option,) = (each for each in ALL[names].params if each.name == "transport")
        variable = f"TOMBOLO_{names[0].upper()}_TRANSPORT"
        assert " | ".join(settings.choices(variable)) in option.help


def test_the_command_says_what_it_is():
    shown = CliRunner().invoke(made(), ["--help"]).output
    project = (paths.checkout() / "pyproject.toml").read_text()
    for words in ("MPI programs", "threaded programs", "families of threads"):
        assert words in " ".join(shown.split()) and words in project


# --- Numbers and words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "run -n 0 x", "run -n -3 x", "run -n huge x", "run -n 1.5 x", "run -n '' x", "run --seed -1 x",
        "run --seed 18446744073709551616 x", "run --evictions -1 x", "dsm run -n 0 x", "dsm run -n 4097 x",
        "dsm run --servers -1 x", "dsm run --servers 4097 x", "svp run -n 0 x", "svp run -n 4097 x",
        "svp run --workers 0 x", "svp run --workers 1025 x", "svp run --seed -1 x",
        "bench one-sided -n 0", "bench one-sided --rounds 0",
        "bench one-sided --samples 0", "bench curves -n -2", "bench curves --rounds 0",
        "bench starvation -n 1", "bench starvation --rounds 0", "bench dsm -n 0", "bench svp --workers 1025",
        "conformance --jobs 0", "conformance -n 0", "conformance --seed -1", "demo -n 0 --examples",
        "scc run gats --seed -1", "build /",
    ],
)  # fmt: skip
def test_a_number_that_means_nothing_is_refused_by_the_name_of_its_option(unbuilt, words):
    given = [word.replace("''", "") for word in words.split()]
    name = next((word for word in given if word.startswith("-")), "SOURCE.c...")
    assert f"Invalid value for '{name}'" in told(*given) or f"'{name}'" in told(*given)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--mpi", MPI, "--machine", "", "program"], "'' is not a machine; choose of coherent, flushed, stale"),
        (["run", "--mpi", MPI, "--machine", "wet", "program"], "'wet' is not a machine"),
        (["run", "--mpi", "", "program"], "--mpi was given an empty word"),
        (["run", "--mpi", "lam", "program"], "'lam' is not an MPI"),
        (["run", "--mpi", MPI, "--machine", "flushed", "--pool", "", "program"], "--pool was given an empty word"),
        (["run", "--mpi", MPI, "--machine", "flushed", "--atomics", "some", "program"], "'some' is not a value of"),
        (["run", "--mpi", MPI, "--machine", "stale", "--on-findings", "", "program"], "'' is not a value of"),
        (["dsm", "run", "--memory", "12parsec", "program"], "--memory: '12parsec' is not a size"),
        (["dsm", "run", "--memory", "\u0664MiB", "program"], "--memory: '\u0664MiB' is not a size"),
        (["dsm", "run", "--memory", "-4MiB", "program"], "--memory: '-4MiB' is not a size"),
        (["dsm", "run", "--memory", "", "program"], "--memory: '' is not a size"),
        (["dsm", "run", "--cache", "1.5GiB", "program"], "--cache: '1.5GiB' is not a size"),
        (["dsm", "run", "--transport", "", "program"], "'' is not a value of TOMBOLO_DSM_TRANSPORT"),
        (["dsm", "run", "--trace", "", "program"], "--trace was given an empty word"),
        (["svp", "run", "-n", "2", "--transport", "air", "program"], "'air' is not a value of TOMBOLO_SVP_TRANSPORT"),
        (["bench", "one-sided", "--rows", "("], "'(' is not a regular expression"),
        (["bench", "one-sided", "--rows", "nothing"], "no row for 2 ranks"),
        (["bench", "one-sided", "--machine", "wet"], "'wet' is not a machine"),
        (["bench", "starvation", "--budget", "nan"], "--budget nan: that is no number of seconds"),
        (["bench", "starvation", "--machine", ""], "'' is not a machine"),
        (["bench", "curves", "--budget", "0"], "--budget 0: that is no number of seconds"),
        (["bench", "curves", "--rows", "nothing"], "no row matches nothing"),
        (["bench", "curves", "--rows", "("], "'(' is not a regular expression"),
        (["bench", "dsm", "--machine", "wet"], "'wet' is not a machine"),
        (["bench", "dsm", "--rows", "nothing"], "no program is called nothing"),
        (["bench", "dsm", "--rows", "("], "'(' is not a regular expression"),
        (["conformance", "--only", "["], "'[' is not a regular expression"),
        (["conformance", "--slice", ""], "a slice is `quick`"),
        (["conformance", "--slice", "3/2"], "a slice is `quick`"),
        (["conformance", "--suite", "mpi4py", "--slice", "quick"], "a slice is `quick` (of MPICH's tests)"),
        (["conformance", "--suite", "rma,"], "'' is no suite"),
        (["conformance", "--suite", "petsc", "--mpi", "lam"], "the distribution's PETSc is linked to"),
        (["conformance", "--limit", "0"], "--limit 0: that is no number of seconds"),
        (["conformance", "--machine", "wet"], "'wet' is not a machine"),
        (["demo", "nothing"], "there is no example 'nothing'"),
        (["demo", "--examples", "--machine", "wet"], "'wet' is not a machine"),
        (["scc", "run", "gats", "--chip", "/nowhere.toml"], "/nowhere.toml: No such file"),
    ],
)  # fmt: skip
def test_a_word_that_means_nothing_is_refused_and_nothing_is_built(unbuilt, program, words, sentence):
    assert sentence in told(*(str(program) if word == "program" else word for word in words))


@pytest.mark.parametrize("text", ["65536", "64B", "4K", "4KiB", "512MiB", "2G", "1TiB"])
def test_a_size_may_have_a_unit(text):
    settings.Given("dsm run", memory=text, cache=text).check()


@pytest.mark.parametrize("command", ["run", "dsm run", "svp run"])
def test_each_option_of_the_table_is_a_flag_with_its_help(command):
    flags = settings.flags(command)
    assert {"machine", "stats"} <= flags.keys()
    found = {param.name: param for param in ALL[tuple(command.split())].params}
    for name, row in flags.items():
        assert found[name].opts == [row["flag"]]
        assert found[name].help.startswith(row["help"][command].partition("{")[0])


def test_a_command_has_no_options_of_others():
    with pytest.raises(TypeError, match="tombolo svp run has no option servers"):
        settings.Given("svp run", servers=2)


def test_more_processes_than_the_host_allows_are_refused_at_once_with_the_limit(unbuilt, monkeypatch, program, capsys):
    monkeypatch.setattr(host, "most_processes", lambda: (300, "kernel.pid_max"))
    monkeypatch.setattr(host, "cores", lambda: 1)
    for words in (
        ["run", "--mpi", MPI, "-n", 100000, program],
        ["dsm", "run", "--transport", "mpi", "-n", 299, "--servers", 1, program],
        ["svp", "run", "-n", 300, program],
        ["demo", "--examples", "-n", 300],
    ):
        if "--mpi" not in words or mpis.find(MPI):
            assert re.search(r"-n \d+: this host allows 300 processes in all \(kernel.pid_max\)", told(*words))
    for words in (["bench", "starvation"], ["bench", "curves"], ["conformance", "--suite", "petsc"]):
        assert "-n 300: this host allows 300" in told(*words, "-n", 300)
    assert capsys.readouterr().err == ""
    options.check_processes(64)
    assert capsys.readouterr().err == ""
    options.check_processes(65)
    assert "-n 65: so many processes take turns on 1 processors" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_JOB_ID", "1")  # of other hosts
    options.check_processes(100000)


def test_the_limit_of_processes_is_the_least_that_the_host_tells(monkeypatch, tmp_path):
    (tmp_path / "pid_max").write_text("32768\n")
    (tmp_path / "threads-max").write_text("1000\n")
    monkeypatch.setattr(host, "KERNEL", str(tmp_path))
    monkeypatch.setattr(host, "OWN_GROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(host, "GROUPS", str(tmp_path / "groups"))
    assert host.most_processes() == (1000, "kernel.threads-max")
    for own, folder in (("4:pids:/a\n", "groups/pids/a"), ("0::/b\n", "groups/b")):
        (tmp_path / "own").write_text(own)
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pids.max").write_text("max\n")
        assert host.most_processes()[0] == 1000
        (tmp_path / folder / "pids.max").write_text("70\n")
        assert host.most_processes() == (70, f"{tmp_path / folder}/pids.max")


# --- Options that nothing would read --------------------------------------------------------------

WINDOW = ["--transport", "window"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--seed", 7], "--seed is read by the machine stale alone, and this would run on coherent"),
        (["run", "--seed", 0, "--machine", "flushed"], "--seed is read by the machine stale alone"),
        (["run", "--evictions", 0], "--evictions is read by the machine stale alone"),
        (["run", "--on-findings", "fail"], "--on-findings is read by the machine stale alone"),
        (["run", "--pool", "/p"], "--pool is read by the machine flushed alone"),
        (["run", "--atomics", "none", "--machine", "stale"], "--atomics is read by the machine flushed alone"),
        *((["run", "--stock", *given], f"{given[0]} has no effect here: with --stock") for given in (
            ["--machine", "stale"], ["--seed", 0], ["--evictions", 9], ["--pool", "/p"], ["--atomics", "full"],
            ["--on-findings", "fail"], ["--stats"])),
        (["dsm", "run", "--seed", 0], "--seed has no effect here: it is for --transport window"),
        (["dsm", "run", "--pool", "/p"], "--pool has no effect here: it is for --transport window"),
        (["dsm", "run", "--mpi", MPI], "--mpi has no effect here: it is for --transport mpi"),
        (["dsm", "run", "--atomic-instructions", "ignore"], "--atomic-instructions has no effect here"),
        (["dsm", "run", *WINDOW, "--seed", 7], "--seed is read by the machine stale alone"),
        (["dsm", "run", *WINDOW, "--evictions", 7, "--machine", "flushed"], "--evictions is read by the machine stale"),
        (["dsm", "run", *WINDOW, "--pool", "/p", "--machine", "stale"], "--pool is read by the machine flushed alone"),
        (["dsm", "run", "--transport", "mpi", "--seed", 7], "--seed has no effect here: it is for --transport window"),
        (["svp", "run", "--seed", 7], "--seed has no effect here: one process"),
        (["svp", "run", "--mpi", MPI], "--mpi has no effect here: one process"),
        (["svp", "run", "-n", 2, "--seed", 7], "--seed is read by the machine stale alone"),
    ],
)  # fmt: skip
def test_an_option_that_would_be_ignored_is_refused_by_name(unbuilt, program, words, sentence):
    if words[0] == "run":
        words = [*words, "--mpi", MPI]
    assert sentence in told(*words, program)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("conformance --machine coherent --seed 3", "--seed"),
        ("conformance --rounds 2", "--rounds"),
        ("conformance -n 2", "-n"),
        ("conformance --suite petsc --jobs 2", "--jobs"),
        ("conformance --suite petsc --only x", "--only"),
        ("conformance --suite petsc --slice 1/2", "--slice"),
        ("conformance --suite mpi4py --jobs 2", "--jobs"),
        ("bench one-sided --all -n 2", "-n"),
        ("bench one-sided --all --loaded", "--loaded"),
        ("bench curves --records x --rounds 3", "--rounds"),
        ("bench curves --records x --machine coherent", "--machine"),
        ("bench dsm --quick --rounds 2", "--rounds"),
        ("bench svp --quick --rounds 2", "--rounds"),
        (f"bench svp --mpi {MPI} --workers 2", "--workers"),
        (f"bench starvation --no-stock --mpi {MPI}", "--mpi"),
        ("demo --machine stale", "--machine"),
        ("demo -n 4", "-n"),
        ("demo --examples --rounds 2", "--rounds"),
    ],
)
def test_an_option_of_another_kind_of_run_is_refused_by_name(unbuilt, words, option):
    sentence = told(*words.split())
    assert sentence.startswith((f"{option} has no effect here: ", f"{option} is read by the machine "))


def test_the_machine_may_come_from_the_environment(unbuilt, monkeypatch, program):
    monkeypatch.setenv(settings.MACHINE, "stale")
    assert settings.machine(None) == "stale" and settings.machine("coherent") == "coherent"
    for words in (["run", "--mpi", MPI, "--seed", 7], ["svp", "run", "-n", 2, "--seed", 7]):
        with pytest.raises(Built):
            CliRunner().invoke(made(), [*map(str, words), str(program)], catch_exceptions=False)
    pool = ["--pool", "/p"]
    assert "this would run on stale" in told("run", "--mpi", MPI, *pool, program)
    assert "this would run on stale" in told("dsm", "run", *WINDOW, *pool, program)
    monkeypatch.setenv(settings.MACHINE, "wet")
    assert "TOMBOLO_MACHINE is 'wet', which is not a machine" in told("run", "--mpi", MPI, program)


@pytest.mark.skipif(mpis.find(MPI) is None, reason="needs MPICH: make env")
def test_a_run_is_on_the_machine_of_the_environment(monkeypatch, started, tmp_path):
    program = compiled(tmp_path, "program")
    for named, expected in (("stale", ["stale", "fail"]), ("", ["coherent", None])):
        monkeypatch.setenv(settings.MACHINE, named)
        result = CliRunner().invoke(made(), ["run", "--mpi", MPI, str(program)])
        assert result.exit_code == 0, result.exception
        argv, _ = started.pop()
        given = {argv[i + 1]: argv[i + 2] for i, word in enumerate(argv) if word == "-genv"}
        assert [given[settings.MACHINE], given.get("TOMBOLO_ON_FINDINGS")] == expected


def test_threads_on_cached_pages_take_the_settings_of_the_machine(started, program):
    stale = ["--machine", "stale", "--seed", "7", "--evictions", "0"]
    for words in ([*WINDOW, *stale], [*WINDOW, "--machine", "flushed", "--pool", "/p"]):
        result = CliRunner().invoke(made(), ["dsm", "run", *words, str(program)])
        assert result.exit_code == 0, result.exception or result.output
    (_, of_stale), (_, of_flushed) = started
    assert (of_stale["TOMBOLO_SEED"], of_stale["TOMBOLO_EVICTIONS"]) == ("7", "0")
    assert of_flushed["TOMBOLO_POOL"] == "/p" and "TOMBOLO_SEED" not in of_flushed


# --- Options that have another name now -----------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("dsm run --atomics ignore", "--atomics is called --atomic-instructions"),
        ("bench dsm --row jacobi", "--row is called --rows"),
        ("bench one-sided --ranks 2", "--ranks is called -n"),
        ("bench starvation --ranks 2", "--ranks is called -n"),
        ("bench curves --ranks 2", "--ranks is called -n"),
        ("conformance --ranks 2", "--ranks is called -n"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(unbuilt, program, words, sentence):
    assert told(*words.split(), *([program] if "run" in words else [])) == sentence


# --- Mistyped options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("run --sede 7 ./prog", "--seed"),
        ("run --machin stale ./prog", "--machine"),
        ("dsm run --transprt window ./prog", "--transport"),
        ("svp run --worker 2 ./prog", "--workers"),
    ],
)
def test_a_mistyped_option_is_refused_with_the_nearest(unbuilt, words, meant):
    sentence = told(*words.split())
    assert f"No such option: {words.split()[-3]}" in sentence and meant in sentence


def test_options_behind_the_program_are_its_own(started, program):
    own = ["--sede", "7", "-n", "--", "--help"]
    for words in (["svp", "run"], ["dsm", "run"], ["svp", "run", "--"], ["dsm", "run", "--"]):
        result = CliRunner().invoke(made(), [*words, str(program), *own])
        assert result.exit_code == 0, result.exception or result.output
        argv, _ = started.pop()
        assert argv == [str(program), *own]


# --- Programs -------------------------------------------------------------------------------------

MPI_PROGRAM = "#include <mpi.h>\nint main(int n, char **a) { MPI_Init(&n, &a); return MPI_Finalize(); }"


@pytest.fixture
def wrong(tmp_path) -> dict[str, str]:
    """Words in the place of PROGRAM, and the beginning of the sentence about each."""
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    return {
        "": "PROGRAM is an empty word",
        "no-such-program": "no folder of PATH has a program 'no-such-program'",
        f"{tmp_path}/gone": f"there is no file {tmp_path}/gone",
        f"{tmp_path}/plain/x": f"there is no file {tmp_path}/plain/x",
        str(tmp_path): f"{tmp_path} is a folder, not a program",
        f"{tmp_path}/loop": f"{tmp_path}/loop cannot be reached: Too many levels of symbolic links",
        str(plain): f"{plain} may not be executed: ",
        f"{tmp_path}/link": f"{tmp_path}/link is a link to gone, which is not there",
    }


@pytest.mark.parametrize("command", ["run", "dsm run", "svp run", "svp run -n 2", "dsm run --transport mpi"])
def test_a_wrong_path_is_named_with_what_is_there_and_nothing_is_built(unbuilt, command, wrong):
    for word, sentence in wrong.items():
        assert told(*command.split(), word).startswith(sentence)


@contextmanager
def another_user() -> Iterator[None]:
    """The tests may run as root, who may read all."""
    own = os.geteuid()
    if own == 0:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(own, own, own)


def test_a_program_in_a_closed_folder_is_not_called_missing(tmp_path, program):
    closed = tmp_path / "closed"
    closed.mkdir()
    program.rename(closed / "program")
    closed.chmod(0)
    try:
        with another_user(), pytest.raises(UserError, match="closed/program cannot be reached: Permission denied"):
            programs.locate(f"{closed}/program")
    finally:
        closed.chmod(0o700)


def test_a_program_that_may_only_be_executed_is_called_so(program, monkeypatch, started):
    program.chmod(0o111)
    folder = program.parent
    if os.geteuid() == 0:  # the folders above are root's alone
        monkeypatch.chdir(folder)
        folder.chmod(0o711)
        program = Path("program")
    with another_user():
        with pytest.raises(UserError, match="program may be executed and not read, and this command has to look"):
            programs.is_elf(program)
        svp_command.tell_of_no_families(program, [], 1)
        assert not programs.is_of_families(f"./{program.name}")


@pytest.mark.parametrize("command", ["dsm run", "svp run"])
def test_a_trace_does_not_replace_the_program(unbuilt, program, command):
    before = program.read_bytes()
    link = program.with_name("link")
    link.symlink_to(program)
    for trace in (program, link):
        assert told(*command.split(), "--trace", trace, program) == f"--trace {trace} would replace the program"
    assert program.read_bytes() == before


def test_a_trace_of_a_job_by_the_environment_is_not_checked_here(unbuilt, monkeypatch, program, tmp_path):
    """As with --transport mpi: its first process may be on another host."""
    monkeypatch.setenv("TOMBOLO_DSM_TRANSPORT", "mpi")
    with pytest.raises(Built):
        words = ["dsm", "run", "--trace", str(tmp_path / "nowhere/trace"), str(program)]
        CliRunner().invoke(made(), words, catch_exceptions=False)


def test_a_file_that_ends_within_the_header_is_no_program(unbuilt, tmp_path):
    short = tmp_path / "short"
    for content in (b"\x7fELF", b"\x7fELF\x02" + bytes(50)):
        short.write_bytes(content)
        short.chmod(0o755)
        assert told("dsm", "run", short) == f"{short} is no whole ELF program: its file ends within the header"


def test_a_python_that_a_script_starts_lacks_mpi4py(tmp_path):
    shim = tmp_path / "python3"
    shim.write_text("#!/bin/sh\nexit 1\n")
    shim.chmod(0o755)
    assert f"{shim} has no mpi4py that can be loaded" in told("run", shim, "x.py")


def test_default_values_are_no_reason_to_refuse(started, program):
    for given in (["--machine", "coherent"], ["--transport", "best"]):
        result = CliRunner().invoke(made(), ["svp", "run", "-n", "1", *given, str(program)])
        assert result.exit_code == 0, result.exception
    assert len(started) == 2


@pytest.mark.parametrize("command", ["svp run", "dsm run", f"run --stock --mpi {MPI}"])
def test_a_command_line_that_is_shown_can_be_pasted(program, command):
    if MPI in command and mpis.find(MPI) is None:
        pytest.skip("needs MPICH: make env")
    own = ["two words", "", "$HOME", "it's"]
    result = CliRunner().invoke(made(), [*command.split(), "--show", str(program), *own])
    assert shlex.split(result.stdout)[-5:] == [str(program), *own]


def test_a_program_of_this_folder_is_told_from_one_of_the_path(unbuilt, monkeypatch, program):
    monkeypatch.chdir(program.parent)
    assert "that of this folder is started as ./program" in told("run", program.name)


@pytest.fixture
def scripts(tmp_path) -> tuple[Path, Path]:
    """One with its interpreter, and one without."""
    both = tmp_path / "script", tmp_path / "text"
    for path, text in zip(both, ("#!/bin/sh\nexit 3\n", "exit 3\n"), strict=True):
        path.write_text(text)
        path.chmod(0o755)
    return both


def test_each_wrong_kind_of_program_is_told_what_to_do(unbuilt, scripts, program):
    script, text = scripts
    assert "is a script, which does not tell the MPI of what it starts: name that with --mpi" in told("run", script)
    assert "neither an ELF program nor a script" in told("run", text)
    sentence = told("run", program)
    assert "is linked to no MPI" in sentence and "--mpi" in sentence and "`tombolo dsm run`" in sentence
    for each in scripts:
        assert "is no ELF program, but a script or the like" in told("dsm", "run", each)


def test_a_file_that_the_kernel_does_not_start_is_an_error_in_a_sentence(monkeypatch, scripts):
    monkeypatch.setattr(programs, "start", REALLY_START)
    _, text = scripts
    assert told("svp", "run", text) == (
        f"{text} cannot be started: it is neither an ELF program of this processor nor a script with its "
        "interpreter in the first line"
    )


@pytest.mark.skipif(mpis.find(MPI) is None, reason="needs MPICH: make env")
def test_an_mpi_program_is_sent_to_the_command_for_it(unbuilt, tmp_path):
    program = compiled(tmp_path, "program", MPI_PROGRAM, mpis.compiler(mpis.need(MPI)))
    for command in ("dsm run", "dsm run --transport mpi", "svp run", "svp run -n 2"):
        sentence = told(*command.split(), program)
        assert f"{program} is an MPI program, linked to libmpi.so.12: start it with `tombolo run`" in sentence


def with_library(folder: Path, soname: str) -> Path:
    """A program that is linked to a library of that name."""
    library = folder / soname
    (folder / "l.c").write_text("int l(void) { return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", folder / "l.c", "-o", library, f"-Wl,-soname,{soname}"], check=True)
    source, program = folder / "linked.c", folder / "linked"
    source.write_text("int l(void);\nint main(void) { return l(); }")
    subprocess.run(["cc", source, "-o", program, library, f"-Wl,-rpath,{folder}"], check=True)
    return program


def test_programs_of_the_other_interfaces_are_sent_to_their_commands(unbuilt, tmp_path):
    shared = with_library(tmp_path, "libtombolo_dsm.so")
    for command in ("run", "svp run", "svp run -n 2"):
        assert "calls tombolo/dsm.h" in (sentence := told(*command.split(), shared))
        assert "start it with `tombolo dsm run`" in sentence
    ignored = told("dsm", "run", "--atomic-instructions", "ignore", shared)
    assert "--atomic-instructions has no effect here: linked calls tombolo/dsm.h" in ignored
    for given in (["--cache", "64MiB"], ["--protocol", "sequential"]):
        assert f"{given[0]} has no effect here: all threads map the same pages" in told("dsm", "run", *given, shared)
    assert "start it with `tombolo svp run`" in told("run", with_library(tmp_path, "libtombolo_svp_c.so"))


def test_a_program_without_families_is_told_of_and_a_wrapper_of_one_is_not(tmp_path, capsys, program, scripts):
    families = with_library(tmp_path, "libtombolo_svp_c.so")
    assert programs.has_families(families) and not programs.has_families(program)
    starts = Path("/usr/bin/env"), ["A=1", str(families), "7"]
    for started, words in ((families, []), starts, (scripts[0], [])):
        svp_command.tell_of_no_families(started, words, 2)
    assert capsys.readouterr().err == ""
    for words in ([], ["A=1", "true"]):
        svp_command.tell_of_no_families(Path("/usr/bin/env"), words, 2)
        err = capsys.readouterr().err
        assert err.startswith("tombolo: env is not linked to the runtime of families: unless it starts a program")
        assert err.endswith("each of 2 processes does all of its work\n")
    svp_command.tell_of_no_families(program, [], 1)
    assert "it runs as without this command" in capsys.readouterr().err


def test_families_in_a_library_of_the_program_count(tmp_path):
    (tmp_path / "l.c").write_text('const char *l(void) { return "TOMBOLO_SVP_WORKERS"; }')
    library = tmp_path / "libown.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "l.c", "-o", library, "-Wl,-soname,libown.so"], check=True)
    (tmp_path / "p.c").write_text("const char *l(void);\nint main(void) { return !l(); }")
    subprocess.run(["cc", tmp_path / "p.c", "-o", tmp_path / "p", library, f"-Wl,-rpath,{tmp_path}"], check=True)
    assert programs.has_families(tmp_path / "p")


# --- Measurements ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "bench one-sided", "bench curves", "bench starvation", "bench dsm", "bench svp", "demo", "conformance",
        "conformance --suite mpi4py", "scc run gats", "scc figures --quick",
    ],
)  # fmt: skip
def test_what_is_measured_is_brought_up_to_date_by_make(monkeypatch, words):
    """Also where all of it is there, as a source may have changed since."""

    def build(what: str, root: Path, target: str, *_, only_if_needed: bool) -> None:
        assert only_if_needed
        raise Built(target)

    def measure(*_, **__) -> None:
        pytest.fail("nothing was brought up to date before it was used")

    if mpis.find(MPI) is None:
        pytest.skip("needs MPICH: make env")
    monkeypatch.delenv("TOMBOLO_LIB_DIR", raising=False)
    for module, name in ((libraries, "need"), (libraries, "need_program"), (records, "Writer")):
        monkeypatch.setattr(module, name, measure)
    monkeypatch.setattr(settings, "choices", lambda variable: ("coherent", "flushed", "stale"))
    monkeypatch.setattr(building, "build", build)
    with pytest.raises(Built, match="scc" if "scc" in words else "native"):
        CliRunner().invoke(made(), words.split(), catch_exceptions=False)


def test_a_folder_of_libraries_that_is_named_is_not_made_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "build", lambda *_, **__: pytest.fail("built"))
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    libraries.refresh("native")
    assert not list(tmp_path.iterdir()) and os.environ["TOMBOLO_LIB_DIR"]
