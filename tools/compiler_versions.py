#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin of tombolo-cc with each version of LLVM that is installed: built, and its tests run.

    tools/compiler_versions.py [VERSION...]

Exit status 1 if a test fails, 77 if no version is here. `make compiler-versions` installs those of Debian.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = 14  # dsm/compiler/CMakeLists.txt
SKIPPED = 77
TESTS = ("cli/tests/store_instrumentation_test.py", "cli/tests/dsm_rebuilt_test.py")


def main() -> int:
    wanted = sys.argv[1:] or installed()
    if not wanted:
        print("no version of clang with LLVM's development package is here")
        return SKIPPED
    return 0 if all([passes(version) for version in wanted]) else 1  # noqa: C419 (a failure ends no loop)


def installed() -> list[str]:
    """Those of Debian that have both clang and the headers."""
    folders = Path("/usr/lib").glob("llvm-*/include/llvm")
    found = (re.search(r"llvm-(\d+)", str(folder)) for folder in folders)
    versions = sorted(int(match[1]) for match in found if match)
    return [str(v) for v in versions if v >= OLDEST and Path(f"/usr/lib/llvm-{v}/bin/clang++").exists()]


def passes(version: str) -> bool:
    folder = built(version)
    env = os.environ | {"TOMBOLO_LIB_DIR": str(folder)}
    command = [str(ROOT / ".env/cli/bin/python"), "-m", "pytest", "-q", *TESTS]
    print(f"LLVM {version}:", flush=True)
    return subprocess.run(command, cwd=ROOT, env=env).returncode == 0


def built(version: str) -> Path:
    """The folder with that plugin; the other libraries are those of the release preset."""
    build = ROOT / "build" / f"llvm-{version}"
    config = f"-DTOMBOLO_LLVM_CONFIG=/usr/lib/llvm-{version}/bin/llvm-config"
    run("cmake", "--preset", "release", "-B", build, config, "--log-level=WARNING")
    run("cmake", "--build", build, "--target", "tombolo_stores", "tombolo_dsm_calls", "--", "--quiet")
    folder = build / "dsm" / "compiler"
    release = ROOT / "build" / "release"
    for part in [*(release / "dsm").glob("*.so"), release / "dsm/tombolo-dsm", release / "runtime/tombolo-locks"]:
        link = folder / part.name
        link.unlink(missing_ok=True)
        link.symlink_to(part)
    return folder


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
