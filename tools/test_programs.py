#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs a part of the test programs of one preset.

    tools/test_programs.py asan --slice day/2               a half of them, the other one tomorrow: for CI
    tools/test_programs.py asan --slice day/2 --build-only

Each program tests one file. A slice takes every Nth of them, so that each has some of every folder. Libraries that no
test is linked with are built where --also names them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import slices

ROOT = Path(__file__).resolve().parent.parent
CORES = str(len(os.sched_getaffinity(0)))


def configured(build: Path) -> int:
    """Brings the list of the tests up to date with the sources; the status."""
    if status := subprocess.run(["make", str(build.relative_to(ROOT) / "build.ninja")], cwd=ROOT).returncode:
        return status
    # A source may have come or gone: only the build itself looks for that.
    return subprocess.run(["cmake", "--build", str(build), "--target", "build.ninja", "--", "--quiet"]).returncode


def tests(build: Path) -> dict[str, list[str]]:
    """The targets that each test of a configured build folder needs, in the order of CTest: the one of its name, or
    those that its labels name."""
    listing = ["ctest", "--test-dir", str(build), "--show-only=json-v1"]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    targets = {}
    for test in json.loads(listed)["tests"]:
        labels = [p["value"] for p in test["properties"] if p["name"] == "LABELS"]
        targets[test["name"]] = labels[0] if labels else [test["name"]]
    return targets


def built(build: Path, targets: Iterable[str]) -> int:
    """Builds these; the status."""
    command = ["cmake", "--build", str(build), "-j", CORES, "--target", *targets, "--", "--quiet"]
    return subprocess.run(command).returncode


def run(build: Path, names: list[str]) -> int:
    """Runs the tests of these names; -V shows how many cases each had."""
    pattern = f"^({'|'.join(map(re.escape, names))})$"
    command = ["ctest", "--test-dir", str(build), "-V", "-j", CORES, "-R", pattern]
    return subprocess.run(command, env={**os.environ, "GTEST_BRIEF": "1"}).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset")
    parser.add_argument("--slice", metavar="K/N", default="1/1", help=slices.HELP)
    parser.add_argument("--also", metavar="TARGET", nargs="+", default=[], help="build these, too")
    parser.add_argument("--build-only", action="store_true", help="do not run them")
    options = parser.parse_args()
    part = slices.slice_of(options.slice, slices.today())
    if part is None:
        parser.error(f"--slice: {slices.EXPECTED}")
    first, of = part
    build = ROOT / "build" / options.preset
    if status := configured(build):
        return status
    chosen = dict(list(tests(build).items())[first::of])
    status = built(build, sorted({target for targets in chosen.values() for target in targets} | set(options.also)))
    return status if status or options.build_only else run(build, list(chosen))


if __name__ == "__main__":
    sys.exit(main())
