# SPDX-License-Identifier: Apache-2.0
"""Fetches MPICH's test programs from the distribution's source package.

apt is pointed at folders of ours, with `deb-src` entries derived from the system's own `deb` ones,
so that no file of the system changes and no address is written here.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tombolo import files, paths
from tombolo.errors import UserError

SYSTEM_SOURCES = Path("/etc/apt")
# Removed in MPI-3; the forms that took their place have the same arguments.
RENAMED = ("hvector", "hindexed", "struct")


def folder() -> Path:
    return paths.cache() / "conformance" / "source"


def fetch() -> Path:
    """The root of the unpacked test suite (`.../test/mpi`); downloads it the first time."""
    if have := unpacked():
        return have
    if shutil.which("apt-get") is None:
        raise UserError("the test programs come from Debian's source package, and apt-get is not here")
    _download(files.folder(folder()))
    archives = sorted(folder().glob("mpich_*.orig.tar.*"))
    archives = [a for a in archives if not a.name.endswith(".asc")]
    if not archives:
        raise UserError(f"apt-get brought no mpich_*.orig.tar.* into {folder()}")
    return unpack(archives[-1])


def unpack(archive: Path) -> Path:
    """The suite of an archive in our folder, beside it; it appears there when it is complete."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as between:
        _call(["tar", "xf", str(archive), "--wildcards", "mpich-*/test/mpi"], Path(between))
        suite = unpacked(Path(between))
        if suite is None:
            raise UserError(f"{archive.name} holds no test/mpi with a configure script")
        modernize(suite / "dtpools" / "src")
        root = suite.parents[1]
        shutil.rmtree(archive.parent / root.name, ignore_errors=True)  # one without a configure script
        root.rename(archive.parent / root.name)
    return archive.parent / suite.relative_to(between)


def unpacked(within: Path | None = None) -> Path | None:
    for configure in sorted((within or folder()).glob("mpich-*/test/mpi/configure")):
        return configure.parent
    return None


def modernize(sources: Path) -> None:
    """Replaces the type constructors that newer MPIs no longer declare."""
    pattern = re.compile(rf"\bMPI_Type_({'|'.join(RENAMED)})\b")
    for path in sources.glob("*.[ch]"):
        text = path.read_text()
        if (new := pattern.sub(r"MPI_Type_create_\1", text)) != text:
            path.write_text(new)


def source_entries(system: Path) -> dict[str, str]:
    """File name -> text of `deb-src` entries for the `deb` entries of a system's /etc/apt."""
    entries = {}
    for path in sorted((system / "sources.list.d").glob("*.sources")):
        text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", path.read_text())
        entries[path.name] = text
    for path in [system / "sources.list", *sorted((system / "sources.list.d").glob("*.list"))]:
        if path.is_file():
            lines = [line for line in path.read_text().splitlines() if re.match(r"deb\s", line)]
            if lines:
                entries[path.name] = "".join(f"deb-src{line[3:]}\n" for line in lines)
    return entries


def _download(into: Path) -> None:
    apt = paths.cache() / "apt"
    for part in ("sources.list.d", "lists/partial", "cache/archives/partial"):
        files.folder(apt / part)
    entries = source_entries(SYSTEM_SOURCES)
    if not entries:
        raise UserError(f"no package source found in {SYSTEM_SOURCES}")
    for name, text in entries.items():
        files.write(apt / "sources.list.d" / name, text)
    get = ["apt-get", "-qq"]
    for setting in (
        "Dir::Etc::sourcelist=/dev/null",
        f"Dir::Etc::sourceparts={apt}/sources.list.d",
        f"Dir::State::Lists={apt}/lists",
        f"Dir::Cache={apt}/cache",
        f"APT::Sandbox::User={_user()}",
    ):
        get += ["-o", setting]
    _call([*get, "update"], into)
    _call([*get, "source", "--download-only", "mpich"], into)


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
