# SPDX-License-Identifier: Apache-2.0
"""Runs the command: as `python -m tombolo`, or by this file's path from the folder it lies in."""

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tombolo.app import main  # noqa: E402

main()
