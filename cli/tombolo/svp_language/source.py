# SPDX-License-Identifier: Apache-2.0
"""A preprocessed source as pieces (tokens), each with its place in the file that it came from.

Two texts are made of it: the marked one, which libclang parses as C, and the final one. Both have the
lines of the preprocessed text, so its line markers hold for them.
"""

import bisect
import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from clang import cindex

from tombolo.svp_language.messages import Position, source_line

SYSTEM_HEADER = "3"


@dataclass(eq=False)
class Piece:
    """A token of the program."""

    start: int
    end: int
    spelling: str
    kind: str  # IDENTIFIER, KEYWORD, PUNCTUATION, LITERAL
    number: int = 0  # among the pieces
    mark: str | None = None  # its text for libclang; None: as it is
    at: int = 0  # of that text in the marked text
    final: str | None = None
    before: list[str] = field(default_factory=list)  # further text of the final one
    after: list[str] = field(default_factory=list)

    def is_identifier(self) -> bool:
        return self.kind == "IDENTIFIER"

    def written(self) -> str:
        text = self.spelling if self.final is None else self.final
        return "".join(self.before) + text + "".join(self.after)


@dataclass(frozen=True)
class Region:
    """Lines of one file, one after the other."""

    start: int
    end: int
    file: str
    line: int
    of_program: bool


class Source:
    def __init__(self, text: str):
        """`text` has a character for each byte."""
        self.text = text
        self.regions = list(_regions(text))
        self._starts = [region.start for region in self.regions]
        self.pieces = self._lexed()
        for number, piece in enumerate(self.pieces):
            piece.number = number
        self._marks: list[int] = []

    # ---- Texts ---------------------------------------------------------------------------------

    def marked(self) -> str:
        parts, at, copied = [], 0, 0
        for piece in self.pieces:
            gap = self.text[copied : piece.start]
            text = piece.spelling if piece.mark is None else piece.mark
            piece.at = at + len(gap)
            parts += [gap, text]
            at = piece.at + len(text)
            copied = piece.end
        parts.append(self.text[copied:])
        self._marks = [piece.at for piece in self.pieces]
        return "".join(parts)

    def final(self) -> str:
        parts, copied = [], 0
        for piece in self.pieces:
            parts += [self.text[copied : piece.start], piece.written()]
            copied = piece.end
        parts.append(self.text[copied:])
        return "".join(parts)

    # ---- Places --------------------------------------------------------------------------------

    def piece_at(self, marked: int) -> Piece | None:
        """The piece whose marked text has this offset, or the first one behind it."""
        number = bisect.bisect_right(self._marks, marked) - 1
        if number >= 0:
            piece = self.pieces[number]
            if marked < piece.at + self._length(piece):
                return piece
        return self.pieces[number + 1] if number + 1 < len(self.pieces) else None

    def piece_of(self, marked: int) -> Piece:
        """The same of an offset in the program's own text, where there is one."""
        piece = self.piece_at(marked)
        if piece is None:
            raise IndexError(f"the source has no piece at {marked}")
        return piece

    def pieces_in(self, start: int, end: int) -> list[Piece]:
        """Those whose marked text begins in a range of offsets."""
        first = bisect.bisect_left(self._marks, start)
        return self.pieces[first : bisect.bisect_left(self._marks, end)]

    def is_of_program(self, marked: int) -> bool:
        """Whether the text is the program's, not a system header's; `marked` is an offset of a piece."""
        number = bisect.bisect_right(self._marks, marked) - 1
        if number < 0:
            return False
        piece = self.pieces[number]
        beyond = marked - piece.at - self._length(piece)
        original = piece.start if beyond < 0 else piece.end + beyond
        return self._region(original).of_program

    def line(self, piece: Piece) -> tuple[str, int]:
        region = self._region(piece.start)
        return region.file, region.line + self.text.count("\n", region.start, piece.start)

    def position_at(self, marked: int) -> Position:
        """Of any offset in the program's part of the marked text."""
        before = self.pieces[max(bisect.bisect_right(self._marks, marked) - 1, 0)]
        following = self.piece_at(marked)
        if following is before:
            return self.position(before)
        if following is None or marked == before.at + self._length(before):
            at = self.position(before)
            return Position(at.file, at.line, at.column + len(before.spelling))
        return self.position(following)

    @staticmethod
    def _length(piece: Piece) -> int:
        """Of its marked text."""
        return len(piece.spelling if piece.mark is None else piece.mark)

    def position(self, piece: Piece) -> Position:
        file, line = self.line(piece)
        return Position(file, line, self._column(piece, file, line))

    def _region(self, start: int) -> Region:
        return self.regions[max(bisect.bisect_right(self._starts, start) - 1, 0)]

    def _column(self, piece: Piece, file: str, line: int) -> int:
        """In the file itself: the preprocessor changes spaces and replaces macros."""
        here = self._neighbours(piece, file, line)
        text = source_line(Position(file, line, 1))
        original = [(start, spelling) for start, _, spelling, _ in tokens(text.encode())]
        if not original:
            return 1
        ours = [other.spelling for other in here]
        wanted = here.index(piece)
        matcher = difflib.SequenceMatcher(None, ours, [spelling for _, spelling in original], False)
        for operation, first, last, other, _ in matcher.get_opcodes():
            if not first <= wanted < last:
                continue
            if operation == "equal":
                return original[other + wanted - first][0] + 1
            # From a macro, whose name is not among ours.
            macros = [start for start, spelling in original[: other + 1] if spelling not in ours]
            return (macros or [original[min(other, len(original) - 1)][0]])[-1] + 1
        return 1

    def _neighbours(self, piece: Piece, file: str, line: int) -> list[Piece]:
        first = last = piece.number
        while first > 0 and self.line(self.pieces[first - 1]) == (file, line):
            first -= 1
        while last + 1 < len(self.pieces) and self.line(self.pieces[last + 1]) == (file, line):
            last += 1
        return self.pieces[first : last + 1]

    # ---- Reading -------------------------------------------------------------------------------

    def _lexed(self) -> list[Piece]:
        """The tokens of the program's own regions, by libclang's lexer."""
        parts, origins, at = [], [], 0
        for region in self.regions:
            if region.of_program:
                origins.append((at, region.start))
                parts.append(self.text[region.start : region.end])
                at += region.end - region.start
        starts = [start for start, _ in origins]
        pieces = []
        for start, end, spelling, kind in tokens("".join(parts).encode("latin-1")):
            begin, original = origins[bisect.bisect_right(starts, start) - 1]
            pieces.append(Piece(start - begin + original, end - begin + original, spelling, kind))
        return pieces


def tokens(text: bytes) -> list[tuple[int, int, str, str]]:
    """Start, end, spelling and kind of each token of a text in C."""
    name = "tokens.c"
    unit = cindex.Index.create().parse(
        name,
        args=["-x", "c", "-std=gnu11", "-ferror-limit=1", "-fsyntax-only"],
        unsaved_files=[(name, text)],
        options=cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
    )
    file = unit.get_file(name)
    whole = cindex.SourceRange.from_locations(
        cindex.SourceLocation.from_offset(unit, file, 0),
        cindex.SourceLocation.from_offset(unit, file, len(text)),
    )
    found = []
    for token in unit.get_tokens(extent=whole):
        extent = token.extent
        start, end = extent.start.offset, extent.end.offset
        found.append((start, end, text[start:end].decode("latin-1"), token.kind.name))
    return [token for token in found if token[3] != "COMMENT"]


def _regions(text: str) -> Iterator[Region]:
    """Between line markers: `# 12 "file.c" 2 3`."""
    own: set[str] = set()  # a macro of a system header is marked as that header's in them
    file, line, of_program, start, at = "", 1, False, 0, 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        marker = _marker(text[at:end]) if text.startswith("# ", at) else None
        if marker:
            if at > start:
                yield Region(start, at, file, line, of_program)
            line, file, flags = marker
            if SYSTEM_HEADER not in flags and not file.startswith("<"):
                own.add(file)
            of_program = file in own
            start = end
        at = end
    yield Region(start, len(text), file, line, of_program)


def _marker(line: str) -> tuple[int, str, list[str]] | None:
    number, _, rest = line[2:].strip().partition(" ")
    name, quote, flags = rest[1:].rpartition('"')
    if not number.isdigit() or not rest.startswith('"') or not quote:
        return None
    try:
        file = json.loads(f'"{name}"')
    except ValueError:
        file = name
    return int(number), file, flags.split()
