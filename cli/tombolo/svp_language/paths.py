# SPDX-License-Identifier: Apache-2.0
"""Follows the paths through a function: families that are synced twice or not at all, and shared
parameters that are written twice, or read after their write.

A message is given only where it holds for all paths that reach a place; the others are found while
the program runs. A function with labels, a family whose address is taken and elements of arrays are
left to the run as well.
"""

from collections.abc import Callable
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind

from tombolo.svp_language import tree
from tombolo.svp_language.program import Create, Function, Operation, Reader, Use

# The possible states of each name. Of a family: ("new",), ("synced",), ("created", place); of a
# shared parameter: ("unwritten",), ("written", place). A place is an offset.
Known = dict[str, frozenset]
NEW = ("new",)
SYNCED = ("synced",)
UNWRITTEN = ("unwritten",)
NORETURN = {
    "exit", "_Exit", "_exit", "abort", "quick_exit", "longjmp", "siglongjmp", "__assert_fail",
    "__builtin_unreachable", "__builtin_trap", "svp__break",
}  # fmt: skip
UNEVALUATED = {CursorKind.CXX_UNARY_EXPR}  # sizeof
MOST_ROUNDS = 8


@dataclass
class Exits:
    """Where the paths of a loop or switch go on."""

    breaks: list[Known]
    continues: list[Known]


Round = Callable[[Known], tuple[Known | None, Exits]]


class Paths:
    def __init__(self, reader: Reader, function: Function):
        self.reader = reader
        self.function = function
        self.families = self._followed_families()
        self.passed: dict[str, set[str]] = {}  # family -> shared parameters of this thread
        self.exits: list[Exits] = []
        self.ends: list[Known] = []  # of the function, but for those without a return
        self.silent = 0

    def check(self) -> None:
        if _has(self.function.body, (CursorKind.LABEL_STMT, CursorKind.ADDR_LABEL_EXPR)):
            return
        known: Known = {}
        if self.function.thread:
            known = {_shared(p.name): frozenset([UNWRITTEN]) for p in self.function.thread.shared}
        end = self._statement(self.function.body, known)
        if end is not None:
            self.ends.append(end)
        self._check_end()

    def _check_end(self) -> None:
        if not self.function.thread or not self.ends:
            return
        for parameter in self.function.thread.shared:
            if all(end[_shared(parameter.name)] == {UNWRITTEN} for end in self.ends):
                self.reader.error(
                    parameter.cursor,
                    f"thread '{self.function.thread.name}' never writes shared '{parameter.name}', which "
                    "the next thread and the creator read",
                )

    def _followed_families(self) -> dict[str, Cursor]:
        followed = {
            _family(variable.cursor): variable.cursor
            for variable in self.function.families
            if tree.is_family(variable.cursor.type)
        }
        self._drop_addressed(self.function.body, followed)
        return followed

    def _drop_addressed(self, cursor: Cursor, followed: dict[str, Cursor]) -> None:
        if cursor.kind == CursorKind.UNARY_OPERATOR and tree.unary(cursor) == tree.ADDRESS:
            followed.pop(_named_family(tree.peeled(tree.children(cursor)[0])), None)
        for child in cursor.get_children():
            self._drop_addressed(child, followed)

    # ---- Statements ----------------------------------------------------------------------------

    def _statement(self, cursor: Cursor, known: Known | None) -> Known | None:
        """The states behind it; None: no path goes on there."""
        if known is None:
            return None
        handler = _STATEMENTS.get(cursor.kind)
        return handler(self, cursor, known) if handler else self._expression(cursor, known)

    def _compound(self, cursor: Cursor, known: Known) -> Known | None:
        end = self._children(cursor, known)
        # Behind a break or return only a case goes on, which is the business of its switch.
        if end is None:
            return None
        self._check_left(end, known)
        return {name: states for name, states in end.items() if name in known}

    def _check_left(self, known: Known, outer: Known) -> None:
        for name, states in known.items():
            if name not in outer and _all(states, "created"):
                self._report_unsynced(name, states)

    def _report_unsynced(self, name: str, states: frozenset) -> None:
        for _, place in states:
            self._error_at(
                place,
                f"family '{self.families[name].spelling}' is created here and not synced on a path to "
                "the end of its scope",
            )

    def _declaration(self, cursor: Cursor, known: Known) -> Known | None:
        after: Known | None = known
        for variable in cursor.get_children():
            if _family(variable) not in self.families:
                after = self._statement(variable, after)
            elif after is not None:
                after = after | {_family(variable): frozenset([NEW])}
        return after

    def _if(self, cursor: Cursor, known: Known) -> Known | None:
        condition, *branches = tree.children(cursor)
        decided = self._expression(condition, known)
        ends = [self._statement(branch, decided) for branch in branches]
        return _joined(ends if len(branches) > 1 else [*ends, decided])

    def _while(self, cursor: Cursor, known: Known) -> Known | None:
        condition, body = tree.children(cursor)
        always = tree.constant(condition) not in (None, 0)
        return self._loop(known, always, lambda k: self._expression(condition, k), body)

    def _do(self, cursor: Cursor, known: Known) -> Known | None:
        body, condition = tree.children(cursor)

        def once(before: Known) -> tuple[Known | None, Exits]:
            after, exits = self._inside(body, before)
            after = _joined([after, *exits.continues])
            return self._statement(condition, after), exits

        return self._rounds(known, once, tree.constant(condition) not in (None, 0))

    def _for(self, cursor: Cursor, known: Known) -> Known | None:
        *header, body = tree.children(cursor)
        first, second = self._semicolons(cursor)
        start = [c for c in header if tree.start(c) < first]
        condition = [c for c in header if first < tree.start(c) < second]
        step = [c for c in header if tree.start(c) > second]
        begun = self._sequence(start, known)
        if begun is None:
            return None
        always = not condition or tree.constant(condition[0]) not in (None, 0)
        end = self._loop(
            begun,
            always,
            lambda k: self._sequence(condition, k),
            body,
            lambda k: self._sequence(step, k),
        )
        return None if end is None else {n: s for n, s in end.items() if n in known}

    def _semicolons(self, cursor: Cursor) -> tuple[int, int]:
        """Of the header: their offsets."""
        pieces = self.reader.source.pieces_in(tree.start(cursor), tree.end(cursor))
        depth, found = 0, []
        for piece in pieces[1:]:
            depth += (piece.spelling in "([{") - (piece.spelling in ")]}")
            if piece.spelling == ";" and depth == 1:
                found.append(piece.at)
            if len(found) == 2:
                break
        # A declaration's `;` is its own: it ends before the condition.
        return (found[0], found[1]) if len(found) == 2 else (tree.start(cursor), tree.end(cursor))

    def _sequence(self, cursors: list[Cursor], known: Known | None) -> Known | None:
        for cursor in cursors:
            known = self._statement(cursor, known)
        return known

    def _loop(
        self,
        known: Known,
        always: bool,
        condition: Callable[[Known], Known | None],
        body: Cursor,
        step: Callable[[Known | None], Known | None] = lambda known: known,
    ) -> Known | None:
        def once(before: Known) -> tuple[Known | None, Exits]:
            after, exits = self._inside(body, condition(before))
            return step(_joined([after, *exits.continues])), exits

        known = self._before_each_round(known, once)
        _, exits = once(known)
        return _joined([*exits.breaks, None if always else condition(known)])

    def _rounds(self, known: Known, once: Round, always: bool) -> Known | None:
        """A loop whose condition stands behind its body."""
        known = self._before_each_round(known, once)
        after, exits = once(known)
        return _joined([*exits.breaks, None if always else after])

    def _before_each_round(self, known: Known, once: Round) -> Known:
        self.silent += 1
        for _ in range(MOST_ROUNDS):
            wider = _joined([known, once(known)[0]])
            if wider is None or wider == known:
                break
            known = wider
        self.silent -= 1
        return known

    def _inside(self, body: Cursor, known: Known | None) -> tuple[Known | None, Exits]:
        self.exits.append(Exits([], []))
        after = self._statement(body, known)
        return after, self.exits.pop()

    def _switch(self, cursor: Cursor, known: Known) -> Known | None:
        condition, body = tree.children(cursor)
        chosen = self._expression(condition, known)
        if chosen is None:
            return None
        exits = Exits([], self.exits[-1].continues if self.exits else [])
        self.exits.append(exits)
        has_default = False
        after: Known | None = None
        for child in tree.children(body):
            if child.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
                has_default |= _has(child, (CursorKind.DEFAULT_STMT,), nested=False)
                after = _joined([after, chosen])
            after = self._statement(child, after)
        self.exits.pop()
        return _joined([after, *exits.breaks, None if has_default else chosen])

    def _case(self, cursor: Cursor, known: Known) -> Known | None:
        return self._statement(tree.children(cursor)[-1], known)

    def _break(self, cursor: Cursor, known: Known) -> Known | None:
        if self.exits:
            self.exits[-1].breaks.append(known)
        return None

    def _continue(self, cursor: Cursor, known: Known) -> Known | None:
        if self.exits:
            self.exits[-1].continues.append(known)
        return None

    def _return(self, cursor: Cursor, known: Known) -> Known | None:
        end = self._children(cursor, known)
        if end is not None:
            for name, states in end.items():
                if name in self.families and _all(states, "created"):
                    self._report_unsynced(name, states)
            self.ends.append(end)
        return None

    # ---- Expressions ---------------------------------------------------------------------------

    def _children(self, cursor: Cursor, known: Known | None) -> Known | None:
        for child in cursor.get_children():
            known = self._statement(child, known)
        return known

    def _expression(self, cursor: Cursor, known: Known | None) -> Known | None:
        if known is None or cursor.kind in UNEVALUATED:
            return known
        key = tree.key(cursor)
        if create := self.function.creates.get(key):
            return self._create(create, known)
        if operation := self.function.operations.get(key):
            return self._operation(operation, known)
        if use := self.function.uses.get(key):
            return self._use(use, known)
        if cursor.kind == CursorKind.BINARY_OPERATOR and tree.binary(cursor) in tree.LOGICAL:
            left, right = tree.children(cursor)
            known = self._expression(left, known)
            return _joined([known, self._expression(right, known)])
        if cursor.kind == CursorKind.CONDITIONAL_OPERATOR:
            condition, *branches = tree.children(cursor)
            known = self._expression(condition, known)
            return _joined([self._expression(branch, known) for branch in branches])
        known = self._children(cursor, known)
        if cursor.kind == CursorKind.CALL_EXPR and cursor.spelling in NORETURN:
            return None
        return known

    def _create(self, create: Create, known: Known) -> Known | None:
        given = self._sequence([*create.fields.values(), *create.arguments], known)
        if given is None:
            return None
        name = _named_family(create.family)
        passed = {use.parameter.name for use in self._passed(create)}
        self.passed.setdefault(name, set()).update(passed)
        if name not in self.families:
            return given
        if _all(given.get(name, frozenset()), "created"):
            self.reader_error(
                create.family,
                f"family '{create.family.spelling}' is created again before its sync",
            )
        return given | {name: frozenset([("created", tree.start(create.family))])}

    def _passed(self, create: Create) -> list[Use]:
        uses = [self.function.uses.get(tree.key(tree.peeled(a))) for a in create.arguments]
        return [use for use in uses if use and use.kind == "pass"]

    def _operation(self, operation: Operation, known: Known) -> Known | None:
        argument = operation.argument
        after = known if argument is None else self._statement(argument, known)
        if operation.name == "break" or argument is None or after is None:
            return None
        name = _named_family(argument)
        if name not in self.families:
            return after
        states = after.get(name, frozenset())
        if _all(states, "new"):
            why = "which is not created"
            self.reader_error(argument, f"{operation.name} of family '{argument.spelling}', {why}")
        elif _all(states, "synced"):
            why = "which was synced before on this path"
            self.reader_error(argument, f"{operation.name} of family '{argument.spelling}', {why}")
        if operation.name == "kill":
            return after
        for shared in self.passed.get(name, set()):
            after = self._write(shared, argument, after)
        return after | {name: frozenset([SYNCED])}

    def _use(self, use: Use, known: Known) -> Known | None:
        if use.kind in ("read", "pass"):
            self._read(use, known)
            return known
        step = use.kind == "step"
        after = known if step else self._statement(tree.children(use.cursor)[-1], known)
        return None if after is None else self._write(use.parameter.name, use.name, after)

    def _read(self, use: Use, known: Known) -> None:
        states = known[_shared(use.parameter.name)]
        if _all(states, "written"):
            self.reader_error(
                use.name,
                f"read of shared '{use.parameter.name}' after its write{self._where(states)}: it would "
                "be the value of the thread before; read it into a variable first",
            )

    def _write(self, name: str, at: Cursor, known: Known) -> Known:
        states = known[_shared(name)]
        if _all(states, "written"):
            self.reader_error(at, f"a second write to shared '{name}' on this path{self._where(states)}")
        return known | {_shared(name): frozenset([("written", tree.start(at))])}

    # ---- Messages ------------------------------------------------------------------------------

    def _where(self, states: frozenset) -> str:
        source = self.reader.source
        lines = sorted({source.line(piece)[1] for _, at in states if (piece := source.piece_at(at))})
        return f" on line {', '.join(map(str, lines))}"

    def reader_error(self, cursor: Cursor, text: str) -> None:
        if not self.silent:
            self.reader.error(cursor, text)

    def _error_at(self, offset: int, text: str) -> None:
        if not self.silent:
            self.reader.error_at(offset, text)


def _shared(name: str) -> str:
    return f"shared {name}"


def _family(cursor: Cursor) -> str:
    return f"family {tree.start(cursor)}-{tree.end(cursor)}"


def _named_family(cursor: Cursor) -> str:
    """The key of the variable that an expression is; empty if it is none."""
    if cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced is not None:
        return _family(cursor.referenced)
    return ""


def _all(states: frozenset, kind: str) -> bool:
    return bool(states) and all(state[0] == kind for state in states)


def _joined(ends: list[Known | None]) -> Known | None:
    """The states where paths come together."""
    found = [end for end in ends if end is not None]
    if not found:
        return None
    names = set.intersection(*(set(end) for end in found))
    return {name: frozenset().union(*(end[name] for end in found)) for name in names}


def _has(cursor: Cursor, kinds: tuple, nested: bool = True) -> bool:
    if cursor.kind in kinds:
        return True
    inner = cursor.get_children()
    if not nested:
        inner = [c for c in inner if c.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT)]
    return any(_has(child, kinds, nested) for child in inner)


_STATEMENTS = {
    CursorKind.COMPOUND_STMT: Paths._compound,
    CursorKind.DECL_STMT: Paths._declaration,
    CursorKind.IF_STMT: Paths._if,
    CursorKind.WHILE_STMT: Paths._while,
    CursorKind.DO_STMT: Paths._do,
    CursorKind.FOR_STMT: Paths._for,
    CursorKind.SWITCH_STMT: Paths._switch,
    CursorKind.CASE_STMT: Paths._case,
    CursorKind.DEFAULT_STMT: Paths._case,
    CursorKind.BREAK_STMT: Paths._break,
    CursorKind.CONTINUE_STMT: Paths._continue,
    CursorKind.RETURN_STMT: Paths._return,
}
