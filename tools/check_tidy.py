#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over translation units of a configured build: those given, or all sources of the
product (their headers come with them).

    tools/check_tidy.py [FILE.cpp...]
    tools/check_tidy.py --slice day/15     a fifteenth of them, another one each day: for CI

Most of its work is on the headers of libraries, the same for each unit. So units of one folder and
with the same flags are checked several at a time, as one unit that includes them. Where their names
get in each other's way, each half is checked by itself.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice, pairwise
from pathlib import Path

import slices

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
FOLDERS = (
    "base", "simulator", "backends", "windows", "baselines", "experiments", "litmus", "runtime", "host",
    "dsm", "pthreads", "svp", "mpi",
)  # fmt: skip
# Clang 14 takes llvm/Support/JSON.h for wrong where the library is that of GCC 12.
NOT_PARSED = ("dsm/compiler/report.cpp",)
APART = ("experiments",)  # each has functions of the same names
AT_A_TIME = 6  # more of those that include LLVM take too long for one slice
HEADERS = r"/(base|machine|simulator|backends|sync|windows|dsm|pthreads|svp|mpi)/|\.cpp$"
TESTS = ("_test.cpp", "_bench.cpp", "_check.cpp")
A_CALL_OF_MPI = re.compile(r"mpi/intercept/.*_test\.cpp")  # MPI has calls whose names end so
PARSER_ALONE = "--checks=-*,misc-unused-alias-decls"  # a third of the time of all checks
NOISE = ("warnings generated", "warning generated", "Suppressed ", "Use -header-filter")


def own_sources() -> list[Path]:
    patterns = [f"{folder}/*.cpp" for folder in FOLDERS]
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = sorted(filter(None, listed.split("\0")))
    return [ROOT / n for n in names if of_product(n) and n not in NOT_PARSED and (ROOT / n).is_file()]


def of_product(name: str) -> bool:
    return not name.endswith(TESTS) or A_CALL_OF_MPI.fullmatch(name) is not None


def flags_by_source() -> dict[Path, tuple[str, ...]]:
    """The compiler's options of each unit, without its input and output."""
    flags = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        options = [w for w in words[1:] if w.startswith(("-I", "-D", "-std=", "-f", "-isystem", "-W"))]
        system = [w for before, w in pairwise(words) if before == "-isystem"]
        for source in sources_of(Path(entry["file"])):
            flags[source] = (*options, *(f"-isystem{folder}" for folder in system))
    return flags


def sources_of(unit: Path) -> list[Path]:
    """The unit, or the sources that CMake compiles together in it."""
    if unit.name.startswith("unity_") and unit.is_file():
        return [Path(name) for name in re.findall(r'^#include "(.+)"$', unit.read_text(), re.MULTILINE)]
    return [unit]


def groups_of(files: list[Path], flags: dict[Path, tuple[str, ...]]) -> list[list[Path]]:
    """The files in groups to be checked at once."""

    def kind(file: Path) -> tuple:
        folder = file.relative_to(ROOT).parts[0] if file.is_relative_to(ROOT) else ""
        return folder, file if folder in APART else None, flags.get(file, ())

    groups = []
    for _, members in groupby(sorted(files, key=lambda f: (str(kind(f)), f)), key=kind):
        while group := list(islice(members, AT_A_TIME)):
            groups.append(group)
    return groups


def tidy(source: Path, flags: tuple[str, ...], *checks: str) -> tuple[int, str]:
    options = [f for f in flags if f != "-isystem"]
    command = ["clang-tidy", "--quiet", f"--header-filter={HEADERS}", *checks, str(source), "--", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if not any(noise in line for noise in NOISE)]
    return done.returncode, done.stdout + "".join(f"{line}\n" for line in errors)


def check(group: list[Path], flags: tuple[str, ...], folder: Path) -> tuple[int, str]:
    if len(group) == 1:
        return tidy(group[0], flags)
    together = folder / f"{'_'.join(group[0].relative_to(ROOT).with_suffix('').parts)}_{len(group)}.cpp"
    together.write_text("".join(f'#include "{file}"\n' for file in group))
    _, conflicts = tidy(together, flags, PARSER_ALONE)
    if "[clang-diagnostic-" not in conflicts:
        return tidy(together, flags, "--checks=-bugprone-suspicious-include")
    half = len(group) // 2
    results = [check(part, flags, folder) for part in (group[:half], group[half:])]
    return max(status for status, _ in results), "".join(output for _, output in results)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path)
    parser.add_argument("--slice", metavar="K/N", default="1/1", help=slices.HELP)
    options = parser.parse_args()
    options.slice = slices.slice_of(options.slice, slices.today())
    if options.slice is None:
        parser.error(f"--slice: {slices.EXPECTED}")
    return options


def main() -> int:
    options = parse_options()
    files = [file.resolve() for file in options.files] or own_sources()
    flags = flags_by_source()
    if missing := [str(file) for file in files if file not in flags]:
        sys.exit(f"{BUILD} compiles no {', '.join(missing)}")
    folder = BUILD / "tidy"
    folder.mkdir(exist_ok=True)
    first, of = options.slice
    groups = groups_of(files, flags)[first::of]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda g: check(g, flags[g[0]], folder), groups))
    print("".join(output for _, output in results), end="")
    print(f"clang-tidy: {sum(map(len, groups))} of {len(files)} files")
    return max((status for status, _ in results), default=0)


if __name__ == "__main__":
    sys.exit(main())
