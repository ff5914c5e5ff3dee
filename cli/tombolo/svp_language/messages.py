# SPDX-License-Identifier: Apache-2.0
"""Messages about a program that name file, line and column, as compilers do."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Position:
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Message:
    position: Position
    text: str
    kind: str = "error"

    def __str__(self) -> str:
        head = f"{self.position}: {self.kind}: {self.text}"
        line = source_line(self.position)
        if not line.strip():
            return head
        gap = "".join("\t" if c == "\t" else " " for c in line[: self.position.column - 1])
        return f"{head}\n{self.position.line:5} | {line}\n      | {gap}^"


class Wrong(Exception):
    """A program with mistakes."""

    def __init__(self, messages: list[Message]):
        super().__init__(f"{len(messages)} mistakes")
        self.messages = sorted(set(messages))


def source_line(position: Position) -> str:
    """As it is in the file; empty if there is none."""
    try:
        lines = Path(position.file).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[position.line - 1] if position.line <= len(lines) else ""
