#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Five threaded programs that others wrote, from Debian's source packages, compiled with tombolo-cc and
tombolo-c++: their output with their threads in processes, on each machine, beside that under Pthreads.

    tools/rebuilt_programs.py [NAME...] [--stores static|full|page] [--megabytes N]

Exit status 1 if one differs, 77 if none of their sources can be had (no network, no apt).
"""

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from tombolo import compilers, dsm_pthreads, paths

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("coherent", "flushed", "stale")
SKIPPED = 77
THREADS = 4
PROCESSES = 10  # besides the workers, some of them have threads that read and write
LIMIT_S = 900


@dataclass(frozen=True)
class Program:
    """How it is compiled in its source folder, and run."""

    package: str
    build: tuple[str, ...]  # {cc}, {cxx}
    made: str  # the program, in the folder
    command: str  # {file}


PROGRAMS = {
    "pigz": Program("pigz", ("make pigz CC={cc}",), "pigz", "-c -p {threads} {file}"),
    "pbzip2": Program(
        "pbzip2",
        ("make pbzip2 CXX='{cxx} -Wno-reserved-user-defined-literal'",),
        "pbzip2",
        "-c -k -p{threads} {file}",
    ),
    "zstd": Program(
        "libzstd",
        ("make -C programs zstd CC={cc} HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0",),
        "programs/zstd",
        "-q -c -T{threads} {file}",
    ),
    "xz": Program(
        "xz-utils",
        (
            "./configure CC={cc} --quiet --disable-shared --disable-nls --disable-doc",
            "make --quiet",
        ),
        "src/xz/xz",
        "-c -1 -T{threads} {file}",
    ),
    # Without Debian's changes its copy of gnulib knows no glibc from 2.28 on, unless by this name.
    "lbzip2": Program(
        "lbzip2",
        ("./configure CC={cc} CPPFLAGS=-D_IO_ftrylockfile --quiet", "make --quiet"),
        "src/lbzip2",
        "-c -k -n{threads} {file}",
    ),
}


class Missing(Exception):
    """The sources cannot be had here."""


def main() -> int:
    arguments = parsed()
    folder = paths.home() / "build" / "rebuilt-programs"
    data = test_data(folder / f"data-{arguments.megabytes}", arguments.megabytes << 20)
    right = []
    for name in arguments.names:
        try:
            program = rebuilt(name, folder, arguments.stores)
        except Missing as why:
            print(f"{name}: skipped: {why}", flush=True)
            continue
        right.append(same(name, program, data))
    if not right:
        return SKIPPED
    return 0 if all(right) else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--stores", choices=compilers.VARIANTS, default="static")
    parser.add_argument("--megabytes", type=int, default=8)
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in PROGRAMS:
            parser.error(f"{name}: there are {', '.join(PROGRAMS)}")
    arguments.names = arguments.names or list(PROGRAMS)
    return arguments


def test_data(file: Path, size: int) -> Path:
    """Half of it text, half of it random numbers."""
    text = b"".join(path.read_bytes() for path in sorted(ROOT.glob("dsm/**/*.h")))
    content = (text * (size // len(text) + 1))[: size // 2] + random.Random(1).randbytes(size // 2)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


# --- The sources ----------------------------------------------------------------------------------


def rebuilt(name: str, folder: Path, stores: str) -> Path:
    program = PROGRAMS[name]
    source = folder / f"{name}-{stores}"
    made = source / program.made
    if made.is_file():
        return made
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(fetched(program.package, folder), source, symlinks=True)
    tools = {"cc": wrapper(folder, "cc", stores), "cxx": wrapper(folder, "c++", stores)}
    for step in program.build:
        command = step.format(**tools)
        done = subprocess.run(command, shell=True, cwd=source, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: {command}\n{(done.stdout + done.stderr)[-3000:]}")
    return made


def wrapper(folder: Path, language: str, stores: str) -> Path:
    """A compiler as one word, for makefiles."""
    script = folder / f"tombolo-{language}-{stores}"
    script.write_text(f'#!/bin/sh\nexec {ROOT}/tombolo dsm {language} --tombolo-stores={stores} "$@"\n')
    script.chmod(0o755)
    return script


def fetched(package: str, folder: Path) -> Path:
    """The unpacked source package, with Debian's changes: of the host's release, else of the stable one. Where an
    archive lacks the file of the changes, without them."""
    place = folder / "sources" / package
    if not any(place.glob("*/")):
        for tool in ("apt-get", "dpkg-source"):
            if shutil.which(tool) is None:
                raise Missing(f"{tool} is not here")
        place.mkdir(parents=True, exist_ok=True)
        host = host_release()
        told = []
        for release, how in ((host, ["--only-source"]), ("stable", ["--only-source"]), (host, ["--tar-only"])):
            told.append(unpack(package, place, apt_options(folder, release), how))
            if not told[-1]:
                break
        else:
            raise Missing(f"the source package {package}: {told[0]}")
    return next(path for path in sorted(place.iterdir()) if path.is_dir())


def unpack(package: str, place: Path, options: list[str], how: list[str]) -> str:
    """Why not, or nothing."""
    command = ["apt-get", *options, "source", "-qq", *how, package]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode == 0 and "--tar-only" in how:
        print(f"{package}: without Debian's changes, which its archive lacks", flush=True)
        done = subprocess.run(["tar", "-xf", newest(place, "*.orig.tar.*")], cwd=place, capture_output=True, text=True)
    return done.stderr.strip()[-300:] if done.returncode != 0 else ""


def newest(place: Path, pattern: str) -> Path:
    return max(place.glob(pattern), key=lambda path: path.stat().st_mtime)


def host_release() -> str:
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")


def apt_options(folder: Path, release: str) -> list[str]:
    """Lists of sources of our own: the host's may name binary packages only."""
    state = folder / "apt" / release
    lists = state / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    sources = state / "all.sources"
    sources.write_text(source_archives(Path("/etc/apt"), release))
    options = [
        f"-oDir::Etc::SourceList={sources}", "-oDir::Etc::SourceParts=-", f"-oDir::State::Lists={lists}",
        "-oAPT::Get::List-Cleanup=0", "-oAPT::Sandbox::User=",
    ]  # fmt: skip
    if not any(lists.glob("*Sources*")):
        done = subprocess.run(["apt-get", *options, "update", "-qq"], capture_output=True, text=True)
        if done.returncode != 0 or not any(lists.glob("*Sources*")):
            raise Missing(f"apt-get update: {done.stderr.strip()[-300:]}")
    return options


def source_archives(folder: Path, release: str) -> str:
    """The host's archives, for sources of a release, in the form of stanzas."""
    stanzas = []
    for file in sorted(folder.glob("sources.list.d/*.sources")):
        for stanza in file.read_text().split("\n\n"):
            lines = [line for line in stanza.splitlines() if not line.startswith("#")]
            fields = dict(line.split(": ", 1) for line in lines if ": " in line)
            stanzas.append(fields | {"Types": "deb-src"})
    for file in sorted([*folder.glob("sources.list"), *folder.glob("sources.list.d/*.list")]):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] == ["deb"] and not words[1].startswith("["):
                fields = {"URIs": words[1], "Suites": words[2], "Components": " ".join(words[3:])}
                stanzas.append({"Types": "deb-src"} | fields)
    own = [fields for fields in stanzas if fields.get("Suites", "").startswith(host_release())]
    if release != host_release():
        own = [fields | {"Suites": release} for fields in own[:1]]
    return "\n\n".join("\n".join(f"{name}: {value}" for name, value in fields.items()) for fields in own) + "\n"


# --- The runs -------------------------------------------------------------------------------------


def same(name: str, program: Path, data: Path) -> bool:
    command = [str(program), *PROGRAMS[name].command.format(threads=THREADS, file=data).split()]
    expected, seconds, _ = run(command, dict(os.environ))
    right = bool(expected)
    print(f"{name}: {len(expected)} bytes under Pthreads, {seconds:.2f} s")
    for transport, machine in [("map", "coherent"), *(("window", machine) for machine in MACHINES)]:
        env = dsm_pthreads.environment(
            PROCESSES, transport=transport, machine=machine, stats="json" if transport == "window" else None
        )
        output, seconds, told = run(command, env)
        equal = output == expected
        right = right and equal
        where = "map" if transport == "map" else f"window on {machine}"
        print(f"  {where}: {'the same' if equal else 'DIFFERS'}, {seconds:.2f} s{summary(told)}", flush=True)
        if not equal:
            print(told[-2000:])
    return right


def run(command: list[str], environment: dict[str, str]) -> tuple[bytes, float, str]:
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, env=environment, timeout=LIMIT_S)
    seconds = time.monotonic() - start
    told = done.stderr.decode(errors="replace")
    return (done.stdout if done.returncode == 0 else b""), seconds, told


def summary(told: str) -> str:
    counts = [json.loads(line.partition("stats ")[2]) for line in told.splitlines() if "stats {" in line]
    if not counts:
        return ""
    names = ("dsm_fetches", "dsm_diffs", "dsm_update_bytes", "dsm_atomics")
    each = ", ".join(f"{name.removeprefix('dsm_')} {sum(count[name] for count in counts)}" for name in names)
    return f", {len(counts)} processes: {each}"


if __name__ == "__main__":
    sys.exit(main())
