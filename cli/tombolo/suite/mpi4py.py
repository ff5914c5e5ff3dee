# SPDX-License-Identifier: Apache-2.0
"""mpi4py's own tests, of all modules that use windows, at several numbers of processes.

They come from mpi4py's source distribution, in the version that is installed beside the MPI. All tests of a
job run in the same processes, one after the other; a job that dies or hangs is started anew behind the
test that it was in.
"""

import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tombolo import files, hints, paths, processes, stats
from tombolo.errors import UserError
from tombolo.launch import job
from tombolo.mpis import Mpi
from tombolo.suite import runner
from tombolo.suite.runner import Setting, Verdict

RANKS = (2, 3, 4)
MACHINES = ("coherent", "flushed", "stale")
PROGRAM = Path(__file__).with_name("guests") / "run_mpi4py_tests.py"
USES_WINDOWS = re.compile(r"\bMPI\.Win\b")
END = "the end of the processes"
START = "the start of the processes"
# A job in which the processes' own time limit does not work.
JOB_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Choice:
    """The tests to run: of all, those that match, every Nth of these, and of these the named ones."""

    only: str | None = None
    slice: tuple[int, int] | None = None
    just: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Tests:
    """mpi4py's tests beside one MPI."""

    mpi: Mpi
    python: Path
    folder: Path
    modules: tuple[str, ...] = field(default=())


# --- Fetching -------------------------------------------------------------------------------------


def prepare(mpi: Mpi, say: Callable[[str], None]) -> Tests:
    """The tests for the mpi4py of this MPI's environment; fetched the first time."""
    python = mpi.prefix / "bin" / "python" if mpi.prefix else None
    version = installed(python) if python else None
    if python is None or version is None:
        raise UserError(
            f"{mpi.key} has no mpi4py beside it, whose tests need one; to have it beside mpich and "
            f"openmpi: {hints.here(hints.MPI4PY, hints.MPI4PY_OF_PACKAGE)}"
        )
    folder = fetch(python, version, say)
    return Tests(mpi, python, folder, modules(folder))


def installed(python: Path) -> str | None:
    """The version of the mpi4py that this Python imports."""
    asked = [str(python), "-c", "import mpi4py; print(mpi4py.__version__)"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True)
    except OSError:
        return None
    return told.stdout.strip() if told.returncode == 0 else None


def fetch(python: Path, version: str, say: Callable[[str], None]) -> Path:
    """The folder of the tests, out of the source distribution of that version."""
    into = paths.cache() / "conformance" / "mpi4py"
    tests = into / f"mpi4py-{version}" / "test"
    if tests.is_dir():
        return tests
    files.folder(into)
    say(f"fetching the source distribution of mpi4py {version}")
    with tempfile.TemporaryDirectory(dir=into) as fresh:
        pip = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--no-binary", "mpi4py", "--dest", fresh, f"mpi4py=={version}"]
        done = subprocess.run(pip, capture_output=True, text=True)
        archives = list(Path(fresh).glob("mpi4py-*.tar.gz"))
        if done.returncode != 0 or not archives:
            raise UserError(f"the source of mpi4py {version} could not be had:\n{done.stderr[-2000:]}")
        unpack(archives[0], Path(fresh), into)
    return tests


def unpack(archive: Path, between: Path, into: Path) -> None:
    """The archive's one folder; it appears in `into` when it is complete."""
    with tarfile.open(archive) as packed:
        packed.extractall(between, filter="data")
    name = archive.name.removesuffix(".tar.gz")
    (between / name).rename(into / name)


def modules(folder: Path) -> tuple[str, ...]:
    """The files of tests in which windows are used."""
    found = [p for p in sorted(folder.glob("test_*.py")) if USES_WINDOWS.search(p.read_text())]
    if not found:
        raise UserError(f"no test of windows in {folder}")
    return tuple(path.name for path in found)


def memory(tests: Tests) -> Path:
    """The folder for the verdicts of the stock MPI."""
    folder = tests.folder.parents[1] / f"{tests.mpi.key}-{tests.mpi.version}"
    return files.folder(folder)


# --- Running --------------------------------------------------------------------------------------


def run_all(
    tests: Tests,
    ranks: tuple[int, ...],
    choice: Choice,
    setting: Setting,
    limit: float,
    seen: Callable[[Verdict], None],
) -> Iterator[Verdict]:
    for count in ranks:
        for verdict in run(tests, count, choice, setting, limit):
            seen(verdict)
            yield verdict


def run_again(tests: Tests, failures: list[Verdict], limit: float) -> Iterator[Verdict]:
    """The same tests under the stock MPI."""
    for count in sorted({verdict.n for verdict in failures}):
        just = tuple(verdict.key for verdict in failures if verdict.n == count)
        yield from run(tests, count, Choice(just=just), Setting("stock"), limit)


def run(tests: Tests, ranks: int, choice: Choice, setting: Setting, limit: float) -> Iterator[Verdict]:
    """The verdicts of one number of processes, by as many jobs as are needed."""
    after: str | None = None
    while True:
        notes, outcome = one_job(tests, ranks, choice, after, setting, limit)
        windows = stats.total(outcome.stderr)
        found, after = merge(notes, outcome)
        for word in found:
            yield Verdict(
                f"{word.test}:{ranks}",
                word.test,
                ranks,
                tests.mpi.key,
                setting.machine,
                setting.seed,
                word.word,
                0,
                served=windows.served,
                forwarded=windows.forwarded,
                reasons=list(windows.reasons),
                output=word.says,
            )
            windows = stats.Stats()  # the job's, told once
        if after is None:
            return


def one_job(
    tests: Tests, ranks: int, choice: Choice, after: str | None, setting: Setting, limit: float
) -> tuple[list[list[dict]], processes.Outcome]:
    """The notes of each process, and the end of the job."""
    with tempfile.TemporaryDirectory() as between:
        folder = Path(between)
        plan = {
            "tests": str(tests.folder),
            "modules": tests.modules,
            "only": choice.only,
            "slice": choice.slice,
            "just": choice.just,
            "after": after,
            "limit": limit * runner.PATIENCE.get(setting.machine, 1),
            "notes": str(folder / "{rank}.jsonl"),
        }
        (folder / "plan.json").write_text(json.dumps(plan))
        command = [str(tests.python), str(PROGRAM), str(folder / "plan.json")]
        started = job(tests.mpi, ranks, command, setting.choice, yields=True)
        outcome = processes.run(started, JOB_SECONDS, folder)
        return [read(folder / f"{rank}.jsonl") for rank in range(ranks)], outcome


def read(path: Path) -> list[dict]:
    """The notes of one process, without a last line that it did not finish."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"]


@dataclass(frozen=True)
class Word:
    """The outcome of one test over all processes."""

    test: str
    word: str
    says: str = ""


def merge(notes: list[list[dict]], outcome: processes.Outcome) -> tuple[list[Word], str | None]:
    """The outcomes of a job's tests in their order, and the test behind which to start anew.

    The first test that some process has not finished is the one that broke the job: others may be
    further, in a test that waits for that process.
    """
    told = [{n["test"]: n for n in each if "outcome" in n} for each in notes]
    order = dict.fromkeys(note["test"] for each in notes for note in each if "test" in note)
    found: list[Word] = []
    for test in order:
        each = [process[test] for process in told if test in process]
        failures = [note["says"] for note in each if note["outcome"] == "failed"]
        if len(each) < len(notes):
            says = "; ".join([*failures, ending(outcome)])
            return [*found, Word(test, "failed" if failures else broken(outcome), says)], test
        found.append(agreed(test, each, failures))
    if outcome.status == 0 and all(each and each[-1].get("end") for each in notes):
        return found, None
    return [*found, Word(END if found else START, broken(outcome), ending(outcome))], None


def agreed(test: str, each: list[dict], failures: list[str]) -> Word:
    """Failed where it failed at one process; skipped where all skipped it."""
    if failures:
        return Word(test, "failed", "; ".join(dict.fromkeys(failures)))
    if all(note["outcome"] == "skipped" for note in each):
        return Word(test, "skipped", each[0]["says"])
    return Word(test, "passed")


def broken(outcome: processes.Outcome) -> str:
    late = outcome.status is None or re.search(r"^Timeout \(", outcome.stderr, re.MULTILINE)
    return "timeout" if late else runner.judged("", outcome.stderr, outcome.status or 1)


def ending(outcome: processes.Outcome) -> str:
    return f"exit {outcome.status}\n{outcome.stderr[-runner.TAIL :]}".strip()
