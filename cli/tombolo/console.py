# SPDX-License-Identifier: Apache-2.0
"""The console that all commands print to; wide enough for the tables where there is no terminal."""

import sys

from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 150

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def paragraph(text: str, style: str | None = None) -> None:
    """Text as it is: no markup, no wrapping."""
    console.print(text, markup=False, soft_wrap=True, style=style)
