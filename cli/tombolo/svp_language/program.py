# SPDX-License-Identifier: Apache-2.0
"""The threads, families and operations of a program, found in libclang's tree and checked."""

from dataclasses import dataclass, field

from clang.cindex import Cursor, CursorKind, StorageClass, Type, TypeKind

from tombolo.svp_language import keywords, tree
from tombolo.svp_language.keywords import CreateWords
from tombolo.svp_language.messages import Message
from tombolo.svp_language.source import Piece, Source

MARKED_CALLS = ("svp__create", "svp__sync", "svp__kill", "svp__break")


@dataclass
class Parameter:
    name: str
    type: Type
    shared: bool
    cursor: Cursor


@dataclass
class Thread:
    name: str
    parameters: list[Parameter]
    static: bool
    first: Cursor  # the first declaration
    definition: Cursor | None = None
    declarations: list[Cursor] = field(default_factory=list)

    @property
    def shared(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.shared]

    @property
    def globals(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if not parameter.shared]


@dataclass
class Create:
    cursor: Cursor
    words: CreateWords
    thread: Thread
    family: Cursor
    fields: dict[str, Cursor]  # those given, but for the family
    arguments: list[Cursor]


@dataclass
class Operation:
    """sync, kill or break."""

    cursor: Cursor
    word: Piece
    name: str
    argument: Cursor | None


@dataclass
class Use:
    """Of a shared parameter: read, write, update (`+=`), step (`++`), pass (to a create)."""

    kind: str
    parameter: Parameter
    cursor: Cursor  # the whole expression
    name: Cursor  # the parameter in it
    thread: Thread


@dataclass
class FamilyVariable:
    cursor: Cursor
    name: str


@dataclass
class IndexVariable:
    cursor: Cursor


@dataclass
class Function:
    """A function with a body, with its parts of the language, by tree.key."""

    cursor: Cursor
    body: Cursor
    thread: Thread | None
    creates: dict[tuple, Create] = field(default_factory=dict)
    operations: dict[tuple, Operation] = field(default_factory=dict)
    uses: dict[tuple, Use] = field(default_factory=dict)
    families: list[FamilyVariable] = field(default_factory=list)
    indices: list[IndexVariable] = field(default_factory=list)


class Reader:
    """Reads a translation unit."""

    def __init__(self, source: Source, marker: keywords.Marker):
        self.source = source
        self.marker = marker
        self.threads: dict[str, Thread] = {}
        self.functions: list[Function] = []
        self.errors: list[Message] = []
        self._function: Function  # the one that is read
        self._done: set[tuple] = set()

    def error(self, cursor: Cursor, text: str) -> None:
        self.error_at(tree.start(cursor), text)

    def error_at(self, offset: int, text: str) -> None:
        if piece := self.source.piece_at(offset):
            self.errors.append(Message(self.source.position(piece), text))

    def read(self, top: Cursor) -> None:
        own = [c for c in top.get_children() if self.source.is_of_program(tree.start(c))]
        for cursor in own:
            if cursor.kind == CursorKind.FUNCTION_DECL:
                self._declare(cursor)
        for cursor in own:
            if cursor.kind == CursorKind.FUNCTION_DECL:
                self._read_function(cursor)
            else:
                self._check_outside(cursor)

    # ---- Declarations --------------------------------------------------------------------------

    def _declare(self, cursor: Cursor) -> None:
        marks = [tree.annotated(p, "svp_shared") for p in cursor.get_arguments()]
        if not tree.annotated(cursor, "svp_thread"):
            self._check_function(cursor, marks)
            return
        types = self._parameter_types(cursor)
        parameters = [
            Parameter(argument.spelling, type_, shared, argument)
            for argument, type_, shared in zip(cursor.get_arguments(), types, marks, strict=True)
        ]
        if self._are_behind_the_brackets(cursor, parameters):
            self.error(cursor, f"the parameters of thread '{cursor.spelling}' have no types within the brackets")
        if cursor.type.kind == TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic():
            self.error(cursor, f"thread '{cursor.spelling}' takes a variable number of arguments")
        thread = self.threads.get(cursor.spelling)
        if thread is None:
            static = cursor.storage_class == StorageClass.STATIC
            thread = Thread(cursor.spelling, parameters, static, cursor)
            self.threads[cursor.spelling] = thread
        elif [p.shared for p in thread.parameters] != marks:
            self.error(cursor, f"thread '{cursor.spelling}' was declared with other shared parameters")
        thread.declarations.append(cursor)
        if cursor.is_definition():
            thread.definition = cursor
            thread.parameters = parameters
        for parameter in parameters:
            self._check_parameter(parameter)
        if cursor.spelling == "main":
            self._check_main(thread, cursor)

    def _are_behind_the_brackets(self, cursor: Cursor, parameters: list[Parameter]) -> bool:
        """Whether names alone are within, as C once had it."""
        name = self.source.piece_of(cursor.location.offset)
        close = self.marker.closing(self.source.pieces[name.number + 1])
        return close is not None and any(tree.start(p.cursor) > close.at for p in parameters)

    @staticmethod
    def _parameter_types(cursor: Cursor) -> list[Type]:
        """Arrays are pointers here."""
        if cursor.type.kind != TypeKind.FUNCTIONPROTO:
            return [argument.type for argument in cursor.get_arguments()]
        return list(cursor.type.argument_types())

    def _check_function(self, cursor: Cursor, marks: list[bool]) -> None:
        name = cursor.spelling
        if name in self.threads:
            self.error(cursor, f"'{name}' was declared as a thread")
        for argument, shared in zip(cursor.get_arguments(), marks, strict=True):
            if shared:
                self.error(argument, f"shared parameter of '{name}', which is no thread")
            if tree.is_family(argument.type):
                self.error(argument, "a family cannot be passed by value; pass a pointer: family *")
        if tree.is_family(cursor.result_type):
            self.error(cursor, "a family cannot be returned")

    def _check_parameter(self, parameter: Parameter) -> None:
        if tree.is_family(parameter.type):
            self.error(parameter.cursor, "a family cannot be passed by value; pass a pointer: family *")
        elif parameter.shared and "variable" in _array_kind(parameter.type):
            self.error(parameter.cursor, "a shared parameter that is an array of computed size")

    def _check_main(self, thread: Thread, cursor: Cursor) -> None:
        types = [tree.plain(parameter.type) for parameter in thread.parameters]
        if thread.shared or types not in ([], ["int", "char **"]):
            self.error(cursor, "thread main has no parameters, or (int argc, char **argv)")

    def _check_outside(self, cursor: Cursor) -> None:
        if cursor.kind == CursorKind.VAR_DECL:
            if tree.is_family(tree.element(cursor.type)):
                self.error(cursor, f"family '{cursor.spelling}' outside of a function")
            elif cursor.type.spelling == "svp_index_type":
                self.error(cursor, f"index '{cursor.spelling}' outside of a thread")
        self._check_fields(cursor)

    def _check_fields(self, cursor: Cursor) -> None:
        for child in cursor.get_children():
            if child.kind == CursorKind.FIELD_DECL and tree.is_family(tree.element(child.type)):
                self.error(child, "a family is a local variable, or an element of a local array; no member")
            if child.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
                self._check_fields(child)

    # ---- Functions -----------------------------------------------------------------------------

    def _read_function(self, cursor: Cursor) -> None:
        bodies = [c for c in cursor.get_children() if c.kind == CursorKind.COMPOUND_STMT]
        if not bodies:
            return
        is_thread = tree.annotated(cursor, "svp_thread")
        thread = self.threads.get(cursor.spelling) if is_thread else None
        self._function = Function(cursor, bodies[0], thread)
        self.functions.append(self._function)
        self._read(bodies[0])

    def _read(self, cursor: Cursor) -> None:
        if tree.key(cursor) in self._done:
            return
        reader = _READERS.get(cursor.kind)
        if reader:
            reader(self, cursor)
        for child in cursor.get_children():
            self._read(child)

    def _read_variable(self, cursor: Cursor) -> None:
        function, name = self._function, cursor.spelling
        initial = [c for c in cursor.get_children() if c.kind.is_expression()]
        if cursor.type.spelling == "svp_index_type":
            if function.thread is None:
                self.error(cursor, f"index '{name}' outside of a thread")
            elif initial:
                self.error(cursor, f"index '{name}' has its value from the family")
            elif cursor.storage_class in (StorageClass.STATIC, StorageClass.EXTERN):
                self.error(cursor, f"index '{name}' is static or extern")
            else:
                function.indices.append(IndexVariable(cursor))
        elif tree.is_family(tree.element(cursor.type)):
            if cursor.storage_class in (StorageClass.STATIC, StorageClass.EXTERN):
                self.error(cursor, f"family '{name}' is static or extern; a family is a local variable")
            elif tree.is_family(cursor.type) and initial:
                self.error(cursor, f"family '{name}' has its value from create")
            else:
                function.families.append(FamilyVariable(cursor, name))

    def _read_struct(self, cursor: Cursor) -> None:
        self._check_fields(cursor)

    def _read_binary(self, cursor: Cursor) -> None:
        operands = tree.children(cursor)
        if len(operands) != 2:
            return
        left = tree.peeled(operands[0])
        if tree.binary(cursor) == tree.COMMA and _called(left) == "svp__create":
            self._read_create(cursor, left, operands[1])
        elif tree.binary(cursor) == tree.ASSIGN:
            if tree.is_family(cursor.type):
                self.error(cursor, "a family cannot be assigned")
            self._read_assignment(cursor, operands[0], "write")

    def _read_compound_assignment(self, cursor: Cursor) -> None:
        self._read_assignment(cursor, tree.children(cursor)[0], "update")

    def _read_unary(self, cursor: Cursor) -> None:
        operator = tree.unary(cursor)
        (operand,) = tree.children(cursor)[:1] or [None]
        if operand is None:
            return
        if operator in tree.STEPS:
            self._read_assignment(cursor, operand, "step")
        elif operator == tree.ADDRESS:
            base, parameter = self._base(operand)
            if parameter and parameter.shared:
                self.error(base, f"the address of shared '{parameter.name}' is taken")
                self._done.add(tree.key(base))

    def _read_assignment(self, cursor: Cursor, target: Cursor, kind: str) -> None:
        base, parameter = self._base(target)
        if parameter is None:
            return
        whole = tree.peeled(target).kind == CursorKind.DECL_REF_EXPR
        self._done.add(tree.key(base))
        if not parameter.shared:
            self.error(
                base,
                f"assignment to '{parameter.name}': its value is that of the creator for all threads "
                "(a global parameter); use a variable, or a shared parameter",
            )
        elif not whole:
            self.error(base, f"shared '{parameter.name}' is written in part; write all of it at once")
        else:
            self._add_use(kind, parameter, cursor, base)

    def _add_use(self, kind: str, parameter: Parameter, cursor: Cursor, name: Cursor) -> None:
        if thread := self._function.thread:
            self._function.uses[tree.key(cursor)] = Use(kind, parameter, cursor, name, thread)

    def _base(self, cursor: Cursor) -> tuple[Cursor, Parameter | None]:
        """The parameter of the running thread whose memory an lvalue is in."""
        cursor = tree.peeled(cursor)
        while cursor.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR):
            inner = tree.children(cursor)
            if not inner or inner[0].type.get_canonical().kind == TypeKind.POINTER:
                inside = tree.peeled(inner[0]) if inner else cursor
                if inside.type.get_canonical().kind not in tree.ARRAYS:
                    return cursor, None
            cursor = tree.peeled(inner[0])
        return cursor, self._parameter(cursor)

    def _parameter(self, cursor: Cursor) -> Parameter | None:
        thread = self._function.thread
        if thread is None or cursor.kind != CursorKind.DECL_REF_EXPR or not cursor.referenced:
            return None
        referenced = cursor.referenced
        return next((p for p in thread.parameters if p.cursor == referenced), None)

    def _read_name(self, cursor: Cursor) -> None:
        parameter = self._parameter(cursor)
        if parameter and parameter.shared:
            self._add_use("read", parameter, cursor, cursor)
        elif cursor.spelling in self.threads and _is_function(cursor):
            self.error(cursor, f"thread '{cursor.spelling}' is used as a value; threads are created by name")

    # ---- Calls ---------------------------------------------------------------------------------

    def _read_call(self, cursor: Cursor) -> None:
        name = _called(cursor)
        callee = tree.peeled(tree.children(cursor)[0]) if tree.children(cursor) else None
        if name in self.threads and callee is not None and _is_function(callee):
            self._done.add(tree.key(callee))
            self.error(
                cursor,
                f"thread '{name}' is called as a function; create(fid; ...) {name}(...) creates it",
            )
        elif name == "svp__create":
            self.error(cursor, "create with its thread is a statement, or the last of an expression")
        elif name in ("svp__sync", "svp__kill"):
            self._read_operation(cursor, name.removeprefix("svp__"))
        elif name == "svp__break":
            self._read_break(cursor)
        else:
            for argument in cursor.get_arguments():
                if argument is not None and tree.is_family(argument.type):
                    self.error(argument, "a family cannot be passed by value; pass a pointer: family *")

    def _read_operation(self, cursor: Cursor, name: str) -> None:
        arguments = list(cursor.get_arguments())
        argument = tree.peeled(arguments[1]) if len(arguments) > 1 else None
        if argument is None:
            return
        if not tree.is_family(argument.type):
            self.error(argument, f"{name} of something that is no family: {tree.shown(argument.type)}")
        else:
            self._add_operation(cursor, name, argument)

    def _read_break(self, cursor: Cursor) -> None:
        arguments = list(cursor.get_arguments())[1:]
        if self._function.thread is None:
            self.error(cursor, "break outside of a loop, a switch and a thread")
        elif arguments and not tree.is_integer(arguments[0].type):
            self.error(
                arguments[0],
                f"the value of break is an integer, not {tree.shown(tree.peeled(arguments[0]).type)}",
            )
        self._add_operation(cursor, "break", arguments[0] if arguments else None)

    def _add_operation(self, cursor: Cursor, name: str, argument: Cursor | None) -> None:
        word = self.source.piece_of(tree.start(cursor))
        self._function.operations[tree.key(cursor)] = Operation(cursor, word, name, argument)

    def _read_create(self, cursor: Cursor, marks: Cursor, call: Cursor) -> None:
        words = self.marker.creates[self.source.piece_of(tree.start(marks)).number]
        self._done.add(tree.key(marks))
        call = tree.peeled(call)
        given = list(marks.get_arguments())[1:]
        for argument in given:
            self._read(argument)
        thread = self._created_thread(call, words)
        if thread is None:
            return
        self._done |= {tree.key(call), tree.key(tree.peeled(tree.children(call)[0]))}
        family = tree.peeled(given[0])
        fields = {
            name: argument
            for name, argument, is_given in zip(keywords.FIELDS, given, words.given, strict=False)
            if is_given and name != "family"
        }
        if not tree.is_family(family.type):
            self.error(family, f"create of something that is no family: {tree.shown(family.type)}")
        self._check_given(fields)
        arguments = list(call.get_arguments())
        self._check_arguments(call, thread, arguments)
        self._function.creates[tree.key(cursor)] = Create(cursor, words, thread, family, fields, arguments)

    def _created_thread(self, call: Cursor, words: CreateWords) -> Thread | None:
        name = _called(call)
        if name in MARKED_CALLS or call.kind != CursorKind.CALL_EXPR:
            self.error(call, "create is followed by the call of a thread")
            return None
        thread = self.threads.get(name)
        if thread is None:
            position = self.source.position(words.callee)
            self.errors.append(Message(position, f"create of '{name}', which is no thread"))
        elif name == "main":
            self.error(call, "create of main")
            self._done.add(tree.key(call))
            return None
        return thread

    def _check_given(self, fields: dict[str, Cursor]) -> None:
        for name, value in fields.items():
            value = tree.peeled(value)
            if name == "place":
                if tree.plain(value.type) != tree.PLACE:
                    self.error(value, f"the place of a create is {tree.shown(value.type)}")
            elif not tree.is_integer(value.type):
                self.error(value, f"the {name} of a create is no integer: {tree.shown(value.type)}")
            elif name == "step" and tree.constant(value) == 0:
                self.error(value, "a step of 0")
            elif name == "block" and (tree.constant(value) or 0) < 0:
                self.error(value, "a block below 0")

    def _check_arguments(self, call: Cursor, thread: Thread, arguments: list[Cursor]) -> None:
        given, expected = len(arguments), len(thread.parameters)
        if given != expected:  # clang takes any number where a declaration has no types
            amount = "few" if given < expected else "many"
            self.error(call, f"too {amount} arguments to thread '{thread.name}', expected {expected}, have {given}")
            return
        for parameter, argument in zip(thread.parameters, arguments, strict=True):
            if parameter.shared:
                self._check_shared_argument(thread, parameter, argument)
            else:
                self._read(argument)

    def _check_shared_argument(self, thread: Thread, parameter: Parameter, argument: Cursor) -> None:
        what = f"shared '{parameter.name}' of '{thread.name}'"
        variable = tree.peeled(argument)
        base, own = self._base(variable)
        if not _is_variable(variable):
            self.error(variable, f"{what} needs a variable, to which its last value goes")
        elif own and own.shared and variable.kind == CursorKind.DECL_REF_EXPR:
            self._done.add(tree.key(variable))
            self._add_use("pass", own, variable, variable)
        elif own:
            self._done.add(tree.key(base))
            self.error(base, f"{what} is written at the sync, and '{own.name}' cannot be written so")
        elif variable.type.is_const_qualified():
            self.error(variable, f"{what} needs a variable that is not const")
        elif variable.kind == CursorKind.MEMBER_REF_EXPR and variable.referenced.is_bitfield():
            self.error(variable, f"{what} needs a variable with an address, not a bit-field")
        if tree.plain(variable.type) != tree.plain(parameter.type):
            self.error(
                variable,
                f"{what} is {tree.shown(parameter.type)}, and the variable is {tree.shown(variable.type)}",
            )
        for child in variable.get_children():
            self._read(child)


def _array_kind(type_: Type) -> str:
    """The name of the kind of an array, or of its elements."""
    canonical = type_.get_canonical()
    if canonical.kind not in tree.ARRAYS:
        return ""
    return f"{canonical.kind.name.lower()} {_array_kind(canonical.element_type)}"


def _called(cursor: Cursor) -> str:
    """The name of a called function."""
    return cursor.spelling if cursor.kind == CursorKind.CALL_EXPR else ""


def _is_function(cursor: Cursor) -> bool:
    referenced = cursor.referenced
    return referenced is not None and referenced.kind == CursorKind.FUNCTION_DECL


def _is_variable(cursor: Cursor) -> bool:
    if cursor.kind == CursorKind.DECL_REF_EXPR:
        referenced = cursor.referenced
        return referenced is not None and referenced.kind in (
            CursorKind.VAR_DECL,
            CursorKind.PARM_DECL,
        )
    if cursor.kind == CursorKind.UNARY_OPERATOR:
        return tree.unary(cursor) == 6
    return cursor.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR)


_READERS = {
    CursorKind.VAR_DECL: Reader._read_variable,
    CursorKind.STRUCT_DECL: Reader._read_struct,
    CursorKind.UNION_DECL: Reader._read_struct,
    CursorKind.BINARY_OPERATOR: Reader._read_binary,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: Reader._read_compound_assignment,
    CursorKind.UNARY_OPERATOR: Reader._read_unary,
    CursorKind.DECL_REF_EXPR: Reader._read_name,
    CursorKind.CALL_EXPR: Reader._read_call,
}
