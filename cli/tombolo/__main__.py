# SPDX-License-Identifier: Apache-2.0
"""Runs the command: as `python -m tombolo`, or by this file's path from the folder it lies in."""

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

COMPILERS = {"cc": "clang", "c++": "clang++"}

if sys.argv[1:2] == ["dsm"] and len(sys.argv) > 2 and sys.argv[2] in COMPILERS:
    # Started for each source of a program: without the other commands, which take longer to load.
    from tombolo import compilers

    compilers.main(COMPILERS[sys.argv[2]], f"tombolo dsm {sys.argv[2]}", sys.argv[3:])

if sys.argv[1:3] == ["svp", "compile"]:
    from tombolo import svp_compile

    svp_compile.main("tombolo svp compile", sys.argv[3:])

from tombolo.app import main  # noqa: E402 (it takes long to load)

main()
