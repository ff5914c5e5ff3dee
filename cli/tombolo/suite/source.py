# SPDX-License-Identifier: Apache-2.0
"""Fetches MPICH's test programs from the distribution's source package.

apt is pointed at folders of ours, with `deb-src` entries derived from the system's own `deb` ones,
so that no file of the system changes and no address is written here.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tombolo import paths
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
    folder().mkdir(parents=True, exist_ok=True)
    _download(folder())
    archives = sorted(folder().glob("mpich_*.orig.tar.*"))
    archives = [a for a in archives if not a.name.endswith(".asc")]
    if not archives:
        raise UserError(f"apt-get brought no mpich_*.orig.tar.* into {folder()}")
    _call(["tar", "xf", archives[-1].name, "--wildcards", "mpich-*/test/mpi"], folder())
    suite = unpacked()
    if suite is None:
        raise UserError(f"{archives[-1].name} holds no test/mpi with a configure script")
    modernize(suite / "dtpools" / "src")
    return suite


def unpacked() -> Path | None:
    for configure in sorted(folder().glob("mpich-*/test/mpi/configure")):
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
        (apt / part).mkdir(parents=True, exist_ok=True)
    entries = source_entries(SYSTEM_SOURCES)
    if not entries:
        raise UserError(f"no package source found in {SYSTEM_SOURCES}")
    for name, text in entries.items():
        (apt / "sources.list.d" / name).write_text(text)
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
