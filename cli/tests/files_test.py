# SPDX-License-Identifier: Apache-2.0
"""A file that is written is replaced whole or stays, however the writing ends; nothing else changes."""

import errno
import os
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tombolo import files, paths, plot, records, svp_compile
from tombolo.app import made
from tombolo.errors import UserError
from tombolo.suite import source
from typer.testing import CliRunner

CLI = Path(__file__).parent.parent
LIMIT = 8192  # bytes of a file


@contextmanager
def limited_files() -> Iterator[None]:
    """No file may grow beyond LIMIT: the writer gets the error that a full disk gives."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def python(code: str, *arguments: object, **more) -> subprocess.Popen:
    argv = [sys.executable, "-c", f"from pathlib import Path\nimport sys\nfrom tombolo import files\n{code}"]
    env = os.environ | {"PYTHONPATH": str(CLI)}
    return subprocess.Popen([*argv, *map(str, arguments)], text=True, env=env, **more)


# --- One file -------------------------------------------------------------------------------------


def test_a_file_is_replaced_when_it_is_complete(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("before")
    with files.replaced(path) as fresh:
        fresh.write_text("after")
        assert path.read_text() == "before" and fresh.parent == tmp_path and fresh.suffix == ".json"
    assert path.read_text() == "after" and names(tmp_path) == ["out.json"]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, ValueError, UserError])
@pytest.mark.parametrize("there", [True, False])
def test_an_end_in_between_leaves_what_was_there(tmp_path, ending, there):
    path = tmp_path / "out"
    if there:
        path.write_text("before")
    with pytest.raises(ending), files.replaced(path) as fresh:
        fresh.write_text("half")
        raise ending
    assert names(tmp_path) == (["out"] if there else [])
    assert not there or path.read_text() == "before"


def test_a_full_disk_is_a_sentence_and_leaves_what_was_there(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with limited_files(), pytest.raises(UserError) as told:
        files.write(path, "x" * (LIMIT + 1))
    why = os.strerror(errno.EFBIG)
    assert str(told.value) == f"{path} cannot be written: {why}; the file of before is kept"
    assert names(tmp_path) == ["out"] and path.read_text() == "before"


def test_rights_stay_and_a_new_file_has_the_usual_ones(tmp_path):
    path = tmp_path / "out"
    before = os.umask(0o027)
    try:
        files.write(path, "new")
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)
        files.write(path, "newer")
        assert path.stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(before)


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as checked:
        files.check(path)
    with pytest.raises(UserError) as written:
        files.write(path, "x")
    assert str(checked.value) == str(written.value)
    return str(checked.value)


def test_a_path_that_cannot_be_written_is_refused_with_its_cause(tmp_path, monkeypatch):
    plain = tmp_path / "plain"
    plain.write_text("kept")
    nowhere = tmp_path / "nowhere" / "out"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert refusal(tmp_path) == f"{tmp_path} cannot be written: Is a directory"
    assert refusal(nowhere) == f"{nowhere} cannot be written: a new file in {nowhere.parent}: No such file or directory"
    assert "plain/out cannot be written: " in refusal(plain / "out") and "Not a directory" in refusal(plain / "out")
    assert "loop cannot be written: Too many levels of symbolic links" in refusal(loop)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root
    assert refusal(plain) == f"{plain} cannot be written: Permission denied"
    assert names(tmp_path) == ["loop", "plain"] and plain.read_text() == "kept"


def test_another_users_file_in_a_folder_with_the_sticky_bit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("before")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    why = "it is another user's, in a folder with the sticky bit; name a path in a folder of yours"
    assert refusal(path) == f"{path} cannot be written: {why}"
    assert names(tmp_path) == ["out"] and path.read_text() == "before"
    tmp_path.chmod(0o777)
    files.check(path)
    files.write(path, "after")
    assert path.read_text() == "after"


def test_a_file_that_is_a_mount_point_is_refused(tmp_path):
    path = tmp_path / "a \\ file"
    path.write_text("before")
    if subprocess.run(["mount", "--bind", path, path], capture_output=True).returncode != 0:
        pytest.skip("needs to be allowed to mount a file")
    try:
        why = "a file system is mounted on it: a rename does not replace it; name a path in a folder of yours"
        assert refusal(path) == f"{paths.shown(path)} cannot be written: {why}"
        assert names(tmp_path) == [path.name] and path.read_text() == "before"
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_fsync_is_written_to(tmp_path, monkeypatch, number):
    def fail(_file):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    path = tmp_path / "out"
    for write in (lambda: files.write(path, "x"), lambda: files.append(path, "", sync=True)):
        if number == errno.EIO:
            with pytest.raises(UserError, match="cannot be written: Input/output error"):
                write()
        else:
            write()
    assert names(tmp_path) == ["out"] and path.read_text() == ("" if number == errno.EIO else "x\n")


def test_a_check_changes_nothing(tmp_path):
    path = tmp_path / "out"
    files.check(path)
    assert names(tmp_path) == []
    path.write_text("before")
    made_at = path.stat().st_mtime_ns
    files.check(path)
    assert names(tmp_path) == ["out"] and path.stat().st_mtime_ns == made_at


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder/target", tmp_path / "link"
    link.symlink_to("folder/target")
    if there:
        target.write_text("before")
    files.write(link, "after")
    assert link.is_symlink() and target.read_text() == "after" and names(target.parent) == ["target"]


# --- Devices and pipes ----------------------------------------------------------------------------


def test_devices_and_pipes_are_written_to(tmp_path):
    files.check(Path("/dev/null"))
    files.write(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UserError, match="/dev/full cannot be written: No space left on device"):
        files.write(Path("/dev/full"), "x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    files.check(pipe)
    reader.start()
    files.write(pipe, "x")
    reader.join()
    assert read == ["x"] and pipe.is_fifo() and names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_gets_the_content_in_its_turn(tmp_path, name):
    """Also where it is a file, which is not replaced: other output is in it."""
    path, out = tmp_path / name, tmp_path / "out"
    if name == "link":
        path.symlink_to("/dev/stdout")
    code = "print('a')\nfiles.check(Path(sys.argv[1]))\nfiles.write(Path(sys.argv[1]), 'b\\n')\nprint('c')"
    with out.open("w") as file:
        assert python(code, path, stdout=file).wait() == 0
    assert out.read_text() == "a\nb\nc\n"
    piped = python(code, path, stdout=subprocess.PIPE)
    assert piped.communicate()[0] == "a\nb\nc\n"


@pytest.mark.parametrize("command", [["--help"], ["scc", "list"]])
def test_a_full_standard_output_is_a_sentence(command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tombolo", *command], stdout=full, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(CLI)},
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "tombolo: standard output cannot be written: No space left on device\n"


# --- Signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_neither_half_a_file_nor_a_folder(tmp_path, number):
    code = """
import signal
import time
files.end_in_order()
path = Path(sys.argv[1])
with files.own_folder(path.parent / "own") as own, files.replaced(path) as fresh:
    (own / "part").write_text("x")
    fresh.write_text("half")
    print("ready", flush=True)
    while True:  # a signal that comes just before a sleep does not shorten it
        time.sleep(0.05)
"""
    path = tmp_path / "out"
    path.write_text("before")
    writer = python(code, path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert writer.stdout.readline() == "ready\n" and len(names(tmp_path)) == 3
    writer.send_signal(number)
    assert writer.wait(timeout=60) in (128 + number, -number)
    assert names(tmp_path) == ["out"] and path.read_text() == "before"


# --- Records --------------------------------------------------------------------------------------


def test_lines_that_a_full_disk_cuts_off_cost_none_of_before(tmp_path):
    path = tmp_path / "records"
    files.append(path, "first\n")
    with limited_files(), pytest.raises(UserError, match="records cannot be written: "):
        files.append(path, "x" * LIMIT + "\n")
    files.append(path, "last\n")
    lines = path.read_text().splitlines()
    assert lines[0] == "first" and lines[-1] == "last" and set("".join(lines[1:-1])) <= {"x"}


def test_commands_that_begin_in_one_second_have_records_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    monkeypatch.setattr(time, "strftime", lambda *_: "now")
    writers = [records.Writer("demo") for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.write({"number": number})
    assert names(tmp_path) == ["demo-now-2.jsonl", "demo-now-3.jsonl", "demo-now.jsonl"]
    assert [f'{{"number": {n}}}' for n in range(3)] == [w.path.read_text().splitlines()[1] for w in writers]


@pytest.mark.parametrize("folder, why", [("plain/results", "Not a directory"), ("plain", "a file has its name")])
def test_a_folder_of_results_that_cannot_be_made_is_a_sentence(tmp_path, monkeypatch, folder, why):
    (tmp_path / "plain").write_text("kept")
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path / folder))
    with pytest.raises(UserError) as told:
        records.Writer("demo")
    assert str(told.value) == f"the folder {tmp_path / folder} cannot be made: {why}"


def test_json_that_is_interrupted_leaves_the_file_of_before(tmp_path, monkeypatch):
    path = tmp_path / "out.jsonl"
    records.write_lines([{"a": 1}], path)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        records.write_lines([{"a": 2}], path)
    assert path.read_text() == '{"a": 1}\n' and names(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize("command", [["bench", "dsm"], ["bench", "svp"], ["scc", "run", "gats"]])
def test_a_path_for_json_is_checked_before_the_run(tmp_path, monkeypatch, command):
    monkeypatch.setattr(paths, "results", lambda: pytest.fail("the run has begun"))
    monkeypatch.setattr("tombolo.libraries.need_program", lambda _: pytest.fail("the run has begun"))
    told = CliRunner().invoke(made(), [*command, "--json", str(tmp_path)])
    assert isinstance(told.exception, UserError)
    assert str(told.exception) == f"{tmp_path} cannot be written: Is a directory"


# --- Pictures, programs, sources ------------------------------------------------------------------


def test_a_picture_that_is_interrupted_leaves_the_one_of_before(tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    plot.families([], path, "none")
    before = path.read_bytes()
    assert before.startswith(b"\x89PNG")

    def half(_figure, file, **_options):
        Path(file).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    with pytest.raises(KeyboardInterrupt):
        plot.families([], path, "none")
    assert path.read_bytes() == before and names(tmp_path) == ["picture.png"]


def test_a_program_that_does_not_compile_leaves_the_one_of_before(tmp_path, capfd):
    path = tmp_path / "program"
    path.write_text("before")
    for command in (["false"], ["sh", "-c", "echo half > $1; false"]):
        with pytest.raises(svp_compile.CompilerFailed):
            svp_compile.run(svp_compile.Request(), command, path)
        assert path.read_text() == "before" and names(tmp_path) == ["program"]
    (tmp_path / "program.c").write_text("int main(void) { return 3; }\n")
    svp_compile.run(svp_compile.Request(show=True), ["cc", str(tmp_path / "program.c")], path)
    assert subprocess.run([path]).returncode == 3 and names(tmp_path) == ["program", "program.c"]
    assert capfd.readouterr().err == f"cc {tmp_path}/program.c -o {path}\n"


@pytest.mark.parametrize("words", ["x.o -o x.o", "x.o -o link.o", "a.c link.o -o ./x.o", "-c a.c -o ./a.c"])
def test_a_compiler_does_not_replace_what_it_reads(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    for name in ("x.o", "a.c"):
        Path(name).write_text("kept")
    Path("link.o").symlink_to("x.o")
    assert ended(words.split()) == 2
    assert "would replace" in capsys.readouterr().err
    assert Path("x.o").read_text() == Path("a.c").read_text() == "kept"


def ended(arguments: list[str]) -> str | int | None:
    with pytest.raises(SystemExit) as end:
        svp_compile.main("svpc", arguments)
    return end.value.code


def test_sources_appear_when_they_are_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "folder", lambda: tmp_path / "source")
    inside = tmp_path / "mpich-1/test/mpi/dtpools/src"
    inside.mkdir(parents=True)
    (inside / "a.c").write_text("MPI_Type_struct\n")
    (inside.parents[1] / "configure").write_text("")
    (tmp_path / "source").mkdir()
    archive = tmp_path / "source/mpich_1.orig.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tmp_path / "mpich-1", "mpich-1")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(source, "modernize", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        source.unpack(archive)
    assert source.unpacked() is None and names(tmp_path / "source") == [archive.name]
    assert source.unpack(archive) == source.unpacked()
    assert (source.unpacked() / "dtpools/src/a.c").read_text() == "MPI_Type_create_struct\n"
    assert names(tmp_path / "source") == ["mpich-1", archive.name]
