# SPDX-License-Identifier: Apache-2.0
"""Translates one preprocessed source."""

from dataclasses import dataclass

from tombolo.svp_language import glue, keywords, tree
from tombolo.svp_language.messages import Wrong
from tombolo.svp_language.paths import Paths
from tombolo.svp_language.program import Reader
from tombolo.svp_language.source import Source
from tombolo.svp_language.writer import Writer


@dataclass(frozen=True)
class Translation:
    c: str
    cpp: str


def translated(text: str, file: str, prefix: str) -> Translation:
    """Of the preprocessed text of `file`; raises Wrong. `prefix` is part of names that C++ calls."""
    source = Source(text)
    marker = keywords.Marker(source)
    marker.mark()
    unit = tree.parsed(source, f"{file}.marked.c")
    if outside := tree.breaks_outside(unit, source):
        for piece in outside:
            marker.mark_break(piece)
        unit = tree.parsed(source, f"{file}.marked.c")
    if errors := [*marker.errors, *tree.errors(unit, source)]:
        raise Wrong(errors)
    reader = Reader(source, marker)
    reader.read(unit.cursor)
    if not reader.errors:
        for function in reader.functions:
            Paths(reader, function).check()
    if reader.errors:
        raise Wrong(reader.errors)
    writer = Writer(reader, prefix)
    written = writer.write()
    main = reader.threads.get("main")
    return Translation(written.text, glue.written(writer, written.creates, bool(main and main.definition)))
