# SPDX-License-Identifier: Apache-2.0
"""The parts of a page: tables, which become cards on a phone, and content that opens."""

import base64
from collections.abc import Iterable
from html import escape


def data_uri(type_: str, content: bytes) -> str:
    """The content as an address that the page holds by itself."""
    return f"data:{type_};base64,{base64.b64encode(content).decode()}"


def details(title: str, inside: str, opened: bool = False) -> str:
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary>{inside}</details>"


def table(headings: Iterable[str], rows: Iterable[list], cards: bool = False) -> str:
    """Cells are HTML, or a pair of HTML and a class; `cards`: on a phone each row is one."""
    headings = list(headings)
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    lines = []
    for row in rows:
        labels = headings if cards else [""] * len(row)
        cells = (_cell(cell, label) for cell, label in zip(row, labels, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    style = "scroll cards" if cards else "scroll"
    return f"<div class='{style}'><table><tr>{head}</tr>{''.join(lines)}</table></div>"


def _cell(cell: str | tuple[str, str], label: str) -> str:
    text, style = cell if isinstance(cell, tuple) else (cell, "")
    attributes = f" class='{style}'" if style else ""
    if label:
        attributes += f" data-label='{label}'"
    return f"<td{attributes}>{text}</td>"
