# SPDX-License-Identifier: Apache-2.0
"""The words of the language in a row of pieces, marked so that libclang parses the program as C.

A word of the language is one where C has no use for it: `thread` and `index` in front of a name, `shared`
in front of a parameter's type, `create(...)` in front of a call, `sync(x)`, `kill(x)` and `break(x)` with
their arguments. Elsewhere it is a name as any other, as in the headers of the C library.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from tombolo.svp_language.messages import Message
from tombolo.svp_language.source import Piece, Source

FIELDS = ("family", "place", "start", "limit", "step", "block")
OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = set(OPEN.values())
# After one of these a word followed by `(` is declared, not used.
BEFORE_DECLARED = {
    "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "struct",
    "union", "enum", "const", "volatile", "static", "extern", "inline", "*", ".", "->", "goto",
}  # fmt: skip
NOT_A_KEYWORD_AFTER = {"struct", "union", "enum", ".", "->", "goto", "typedef"}


@dataclass
class CreateWords:
    """The pieces of `create(fid; place; ...) f(...)`."""

    word: Piece
    open: Piece
    separators: list[Piece]
    close: Piece
    callee: Piece
    call_open: Piece
    call_close: Piece
    given: list[bool] = field(default_factory=list)  # which of FIELDS


class Marker:
    def __init__(self, source: Source):
        self.source = source
        self.pieces = source.pieces
        self.errors: list[Message] = []
        self.creates: dict[int, CreateWords] = {}  # by the number of the piece `create`
        self.breaks: set[int] = set()

    def mark(self) -> None:
        for piece in self.pieces:
            if piece.spelling in _MARKS and piece.mark is None:
                _MARKS[piece.spelling](self, piece)

    def mark_break(self, piece: Piece) -> None:
        """A `break` that stands in no loop ends the family."""
        piece.mark = "svp__break(0)"
        self.breaks.add(piece.number)

    # ---- Words ---------------------------------------------------------------------------------

    def _thread(self, piece: Piece) -> None:
        name, bracket = self._next(piece), self._next(piece, 2)
        if self._before(piece) in NOT_A_KEYWORD_AFTER or not (name and bracket):
            return
        if name.is_identifier() and bracket.spelling == "(":
            piece.mark = '__attribute__((annotate("svp_thread"))) void'

    def _shared(self, piece: Piece) -> None:
        following, second = self._next(piece), self._next(piece, 2)
        if not following or not second or self._before(piece) in NOT_A_KEYWORD_AFTER:
            return
        if self._before(piece) in ("(", ","):
            if following.is_identifier() or following.kind == "KEYWORD":
                piece.mark = '__attribute__((annotate("svp_shared")))'
        elif following.kind == "KEYWORD" or (following.is_identifier() and second.is_identifier()):
            self._error(piece, "shared declares a parameter of a thread")
            piece.mark = ""

    def _index(self, piece: Piece) -> None:
        following = self._next(piece)
        if self._before(piece) not in NOT_A_KEYWORD_AFTER and following and following.is_identifier():
            piece.mark = "svp_index_type"

    def _create(self, piece: Piece) -> None:
        bracket = self._next(piece)
        if not bracket or bracket.spelling != "(" or self._is_declared(piece):
            return
        close = self.closing(bracket)
        if close is None:
            return
        separators = self._top_level(bracket, close, ";")
        callee = self._next(close)
        if not (callee and callee.is_identifier()):
            if separators:
                self._error(piece, "create is followed by the call of a thread: create(fid; ...) f(...)")
                self._blank(piece, close)
            return
        call = self._next(callee)
        call_close = self.closing(call) if call and call.spelling == "(" else None
        if call is None or call_close is None:
            self._error(callee, f"create is followed by a call: {callee.spelling}(...)")
            self._blank(piece, callee)
            return
        words = CreateWords(piece, bracket, separators, close, callee, call, call_close)
        if self._check_fields(words):
            self._mark_create(words)
        else:
            self._blank(piece, call_close)

    def _check_fields(self, words: CreateWords) -> bool:
        edges = [words.open, *words.separators, words.close]
        if len(edges) - 1 > len(FIELDS):
            self._error(
                edges[len(FIELDS)],
                f"create with {len(edges) - 1} fields; there are {len(FIELDS)}: {'; '.join(FIELDS)}",
            )
            return False
        words.given = [b.number > a.number + 1 for a, b in pairwise(edges)]
        if not words.given[0]:
            self._error(words.word, "create without a family: create(fid; ...)")
            return False
        for first, last in pairwise(edges):
            if commas := self._top_level(first, last, ","):
                self._error(commas[0], "the fields of create are separated by ';'")
                return False
        return True

    def _mark_create(self, words: CreateWords) -> None:
        words.word.mark = "svp__create"
        words.open.mark = f"({len(words.given)},"
        edges = [*words.separators, words.close]
        for given, edge in zip(words.given, edges, strict=True):
            end = ")," if edge is words.close else ","
            edge.mark = end if given else f"svp__none{end}"
        self.creates[words.word.number] = words

    def _sync(self, piece: Piece) -> None:
        if argument := self._argument(piece):
            if commas := self._top_level(*argument, ","):
                self._error(commas[0], "sync has one argument, the family")
            piece.mark, argument[0].mark = "svp__sync", "(1,"

    def _kill(self, piece: Piece) -> None:
        argument = self._argument(piece)
        if argument and not self._top_level(*argument, ","):
            piece.mark, argument[0].mark = "svp__kill", "(1,"

    def _break(self, piece: Piece) -> None:
        bracket = self._next(piece)
        close = self.closing(bracket) if bracket and bracket.spelling == "(" else None
        if bracket is None or close is None:
            return
        if commas := self._top_level(bracket, close, ","):
            self._error(commas[0], "break has one value")
        empty = close.number == bracket.number + 1
        piece.mark, bracket.mark = "svp__break", "(0" if empty else "(1,"
        self.breaks.add(piece.number)

    def _atomic(self, piece: Piece) -> None:
        """`_Atomic(T)`: see tree.OPTIONS, which leave the other form out."""
        bracket = self._next(piece)
        if bracket and bracket.spelling == "(":
            piece.mark = "__typeof__"

    # ---- Around a piece ------------------------------------------------------------------------

    def _error(self, piece: Piece, text: str) -> None:
        self.errors.append(Message(self.source.position(piece), text))

    def _blank(self, first: Piece, last: Piece) -> None:
        for piece in self.pieces[first.number : last.number + 1]:
            piece.mark = ""

    def _next(self, piece: Piece, steps: int = 1) -> Piece | None:
        number = piece.number + steps
        return self.pieces[number] if number < len(self.pieces) else None

    def _before(self, piece: Piece) -> str:
        return self.pieces[piece.number - 1].spelling if piece.number else ""

    def _is_declared(self, piece: Piece) -> bool:
        if not piece.number:
            return False
        before = self.pieces[piece.number - 1]
        return before.is_identifier() or before.spelling in BEFORE_DECLARED

    def _argument(self, piece: Piece) -> tuple[Piece, Piece] | None:
        """The brackets of a call with arguments."""
        bracket = self._next(piece)
        if not bracket or bracket.spelling != "(" or self._is_declared(piece):
            return None
        close = self.closing(bracket)
        return (bracket, close) if close and close.number > bracket.number + 1 else None

    def closing(self, bracket: Piece) -> Piece | None:
        """The bracket that closes another one."""
        depth = 0
        for piece in self.pieces[bracket.number :]:
            if piece.spelling in OPEN and piece.kind == "PUNCTUATION":
                depth += 1
            elif piece.spelling in CLOSE and piece.kind == "PUNCTUATION":
                depth -= 1
                if depth == 0:
                    return piece
        return None

    def _top_level(self, first: Piece, last: Piece, spelling: str) -> list[Piece]:
        """The pieces of this spelling between two pieces, in no bracket."""
        return top_level(self.pieces[first.number + 1 : last.number], spelling)


def top_level(pieces: list[Piece], spelling: str) -> list[Piece]:
    found, depth = [], 0
    for piece in pieces:
        if piece.spelling in OPEN:
            depth += 1
        elif piece.spelling in CLOSE:
            depth -= 1
        elif depth == 0 and piece.spelling == spelling:
            found.append(piece)
    return found


_MARKS = {
    "thread": Marker._thread,
    "shared": Marker._shared,
    "index": Marker._index,
    "create": Marker._create,
    "sync": Marker._sync,
    "kill": Marker._kill,
    "break": Marker._break,
    "_Atomic": Marker._atomic,
}
