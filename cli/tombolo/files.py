# SPDX-License-Identifier: Apache-2.0
"""Writes files so that nothing that was there is lost, and nothing that is there is half of something.

A file that is named as output is replaced whole, by a rename, when its content is complete: until then,
and for good where it does not become complete, the file of before is there. A link is followed, and stays.
A device, a pipe, and /dev/stdout are no files: they are written to when the content is complete. No other
file is removed. A path that cannot be written, and a full disk, are UserErrors that name the path and the cause.
"""

import errno
import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tombolo import paths
from tombolo.errors import UserError

LONGEST_SUFFIX = 16
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NO_FSYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file for the block to fill. It takes the place of `path`, unless the block raises."""
    fresh = Path()
    try:
        target = _target(path)
        fresh = _fresh(target, path)
        try:
            _make(fresh)
            yield fresh
            _finish(fresh, target, path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as mistake:
        # Others are of a file that the block reads, or of a program that it starts.
        if mistake.filename in (None, str(fresh), str(path), os.path.realpath(path)):
            raise UserError(_sentence(path, mistake)) from None
        raise


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> None:
    """Replaces a file by one with this content."""
    with replaced(path) as fresh:
        fresh.write_bytes(content.encode(encoding) if isinstance(content, str) else content)


def check(path: Path) -> None:
    """A UserError where `path` cannot be written, for commands that have long to run before they do."""
    try:
        target = _target(path)
        fresh = _fresh(target, path)
        try:
            _make(fresh)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as mistake:
        raise UserError(_sentence(path, mistake)) from None


def append(path: Path, text: str, sync: bool = False) -> None:
    """Adds lines to a file. A full disk leaves the lines of before, maybe with a part of the first new
    one behind them; the lines that are added next begin on a line of their own."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            left = memoryview((("\n" if _torn(path) else "") + text).encode())
            while left:
                left = left[os.write(number, left) :]
            if sync:
                _synchronize(number)
        finally:
            os.close(number)
    except OSError as mistake:
        raise UserError(_sentence(path, mistake)) from None


def new(path: Path) -> bool:
    """Makes an empty file; False if there is something of this name."""
    try:
        _make(path)
        return True
    except FileExistsError:
        return False
    except OSError as mistake:
        raise UserError(_sentence(path, mistake)) from None


def folder(path: Path) -> Path:
    """Makes a folder if it is not there, and those that it is in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as mistake:
        why = "a file has its name" if mistake.errno == errno.EEXIST else mistake.strerror
        raise UserError(f"the folder {paths.shown(path)} cannot be made: {why}") from None
    return path


@contextmanager
def own_folder(path: Path) -> Iterator[Path]:
    """A folder of the block alone, with this path, which has to be new. It is removed at the end with all
    that is in it."""
    try:
        path.mkdir(mode=0o700)
    except OSError as mistake:
        raise UserError(_sentence(path, mistake)) from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def beside(path: Path, suffix: str = "") -> Path:
    """A path that is not in use, in the folder of the file that `path` means."""
    target = _target(path)
    return (target.parent if target else Path(tempfile.gettempdir())) / f".tombolo-{secrets.token_hex(8)}{suffix}"


def end_in_order() -> None:
    """From here on SIGTERM and SIGHUP end the command as Ctrl-C does: blocks remove the files that they made."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, leave)


@contextmanager
def ending_later() -> Iterator[None]:
    """A signal that ends the command waits until the block has ended, for code that cannot be left in between."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- Parts ----------------------------------------------------------------------------------------


def _target(path: Path) -> Path | None:
    """The file that `path` means, behind links; None for a device and the like, which is not replaced. An
    OSError for a folder, and for a file that this user may not write."""
    if _descriptor(path) is not None:
        return None
    target = Path(os.path.realpath(path))
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(kind):
        raise _refused(errno.EISDIR, path)
    if not os.access(target, os.W_OK):  # a rename would not ask
        raise _refused(errno.EACCES, path)
    if not stat.S_ISREG(kind):
        return None
    if (kept := _why_it_stays(target)) is not None:
        raise OSError(*kept, str(path))
    return target


def _why_it_stays(target: Path) -> tuple[int, str] | None:
    """Why a rename over a file would fail, though the file and its folder may be written."""
    if _is_mount_point(target):
        return errno.EBUSY, "a file system is mounted on it: a rename does not replace it"
    folder, user = target.parent.stat(), os.geteuid()
    if folder.st_mode & stat.S_ISVTX and user not in (0, folder.st_uid, target.stat().st_uid):
        return errno.EPERM, "it is another user's, in a folder with the sticky bit"
    return None


def _is_mount_point(target: Path) -> bool:
    """Also where a file of the same file system is mounted, which `os.path.ismount` does not see."""
    escaped = str(target)
    for character in "\\ \t\n":
        escaped = escaped.replace(character, f"\\{ord(character):03o}")
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return any(line.split(" ")[4:5] == [escaped] for line in mounts.splitlines())


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that the path means, as /dev/stdout and /dev/fd/3 do: its file is
    written where it stands, and keeps its content."""
    own = f"/proc/{os.getpid()}/fd"
    for _ in range(40):  # as many links as the kernel follows
        if path.name.isdigit() and os.path.realpath(path.parent) == own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _fresh(target: Path | None, path: Path) -> Path:
    """With the suffix of the path: programs and libraries choose a format by it."""
    return beside(target or path, path.suffix if len(path.suffix) <= LONGEST_SUFFIX else "")


def _make(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))


def _finish(fresh: Path, target: Path | None, path: Path) -> None:
    if target is None:
        _pour(fresh, path)
        fresh.unlink()
        return
    with fresh.open("rb") as file:
        _synchronize(file.fileno())
    if target.exists():
        _take_over(fresh, target.stat())
    fresh.replace(target)


def _synchronize(number: int) -> None:
    """Some disks tell only here that they are full. Some file systems have none: their writes are as safe as
    they get."""
    try:
        os.fsync(number)
    except OSError as mistake:
        if mistake.errno not in NO_FSYNC:
            raise


def _take_over(fresh: Path, before: os.stat_result) -> None:
    """The rights and, if this user may give it away, the owner of the file of before."""
    made = fresh.stat()
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):
            os.chown(fresh, before.st_uid, before.st_gid)
    if not made.st_mode & 0o111:  # a program has been made one by its linker
        fresh.chmod(stat.S_IMODE(before.st_mode))


def _pour(fresh: Path, path: Path) -> None:
    number = _descriptor(path)
    sys.stdout.flush()
    out = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if number is None else os.dup(number)
    with fresh.open("rb") as source, os.fdopen(out, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _torn(path: Path) -> bool:
    """Whether a file ends in the middle of a line."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _refused(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def _sentence(path: Path, mistake: OSError) -> str:
    of_folder = mistake.errno in (errno.ENOENT, errno.ENOTDIR) or (
        mistake.errno in (errno.EACCES, errno.EROFS) and mistake.filename != str(path)
    )
    where = f"a new file in {Path(os.path.realpath(path)).parent}: " if of_folder else ""
    kept = "; the file of before is kept" if mistake.errno in FULL and os.path.exists(path) else ""
    remedy = "; name a path in a folder of yours" if mistake.errno in (errno.EPERM, errno.EBUSY) else ""
    return f"{paths.shown(path)} cannot be written: {where}{mistake.strerror}{kept}{remedy}"
