# SPDX-License-Identifier: Apache-2.0
"""Writes the program's C: as it is, with the words of the language replaced by calls of svp_program.h."""

import json
from dataclasses import dataclass, field

from clang.cindex import Cursor, Type, TypeKind

from tombolo.svp_language import tree
from tombolo.svp_language.keywords import FIELDS, top_level
from tombolo.svp_language.program import Create, Function, Operation, Parameter, Reader, Thread, Use
from tombolo.svp_language.source import Piece

INDEX = "svpc_index"
MAIN = "svpc_main"
POINTER = 8  # bytes
CLEANUP = "__attribute__((__cleanup__(svp_leave)))"


@dataclass(frozen=True)
class CreateFunction:
    """A function in C++ for one create of the program."""

    name: str
    thread: Thread
    given: tuple[str, ...]  # of FIELDS, without the family
    file: str
    line: int

    def parameters(self) -> list[str]:
        kinds = {"place": "svp_place"}
        return [f"{kinds.get(name, 'long')} {name}" for name in self.given]

    @property
    def is_range(self) -> bool:
        return any(name != "place" for name in self.given)


@dataclass
class Written:
    text: str
    creates: list[CreateFunction] = field(default_factory=list)


class Writer:
    def __init__(self, reader: Reader, prefix: str):
        """`prefix` tells the functions of this source from those of others."""
        self.reader = reader
        self.source = reader.source
        self.prefix = prefix
        self.sites: list[str] = []
        self.creates: list[CreateFunction] = []

    def write(self) -> Written:
        for thread in self.reader.threads.values():
            self._thread(thread)
        for function in self.reader.functions:
            self._function(function)
        self._declarations()
        return Written(self.source.final(), self.creates)

    # ---- Names ---------------------------------------------------------------------------------

    def call_name(self, thread: Thread) -> str:
        """The function that C++ calls for a thread."""
        middle = f"{self.prefix}_" if thread.static else ""
        return f"svpc_thread_{middle}{thread.name}"

    def _site(self, piece: Piece, name: str) -> str:
        file, line = self.source.line(piece)
        site = f"{{{json.dumps(file)}, {line}, {json.dumps(name)}}}"
        if site not in self.sites:
            self.sites.append(site)
        return f"&svpc_sites[{self.sites.index(site)}]"

    def _declarations(self) -> None:
        """In front of the first piece, on its line."""
        if not self.source.pieces:
            return
        text = ""
        if self.sites:
            text += f"static const struct svp_site svpc_sites[] = {{{', '.join(self.sites)}}}; "
        for create in self.creates:
            parameters = ["svp_family *", "const struct svp_site *", *create.parameters()]
            text += f"void {create.name}({', '.join([*parameters, 'const void *'])}); "
        self.source.pieces[0].before.insert(0, text)

    # ---- Threads -------------------------------------------------------------------------------

    def _thread(self, thread: Thread) -> None:
        for cursor in thread.declarations:
            self._signature(thread, cursor)
        if thread.name == "main":
            if thread.definition:
                self._after(thread.definition, self._main_call(thread))
            return
        self._first_piece(thread.first).before.append(self._types(thread))
        if thread.definition:
            self._after(thread.definition, self._call(thread))

    def _signature(self, thread: Thread, cursor: Cursor) -> None:
        name = self._name_piece(cursor)
        word = self.source.pieces[name.number - 1]
        word.final = "void"
        if thread.name == "main":
            name.final = f"static void {MAIN}"
            word.final = ""
        opening = self.source.pieces[name.number + 1]
        arguments = list(cursor.get_arguments())
        opening.after.append(f"const long {INDEX} __attribute__((unused))")
        if arguments:
            opening.after.append(", ")
        following = self.source.pieces[opening.number + 1]
        if not arguments and following.spelling == "void":
            following.final = ""
        for argument in arguments:
            if tree.annotated(argument, "svp_shared"):
                end = f" *{_end(argument.spelling)}" if argument.spelling else " *"
                self._replace(argument, f"struct svp_end{end} __attribute__((unused))")

    def _types(self, thread: Thread) -> str:
        """The arguments of a create, and the types of shared parameters."""
        text = "".join(f"typedef __typeof__({tree.spelled(p.type)}) {_type(thread, p)}; " for p in thread.shared)
        members = "".join(f"{_member(p, f'g{n}')}; " for n, p in enumerate(thread.globals))
        if members:
            text += f"struct {_globals(thread)} {{ {members}}}; "
            size, _ = layout(thread)
            holds = f"sizeof(struct {_globals(thread)}) == {size}"
            text += f'__extension__ _Static_assert({holds}, "arguments"); '
        if thread.parameters:
            shared = f"struct svp_binding shared[{len(thread.shared)}]; " if thread.shared else ""
            inner = f"struct {_globals(thread)} globals; " if members else ""
            text += f"struct {_arguments(thread)} {{ {shared}{inner}}}; "
        return text

    def _call(self, thread: Thread) -> str:
        """From C++ to the thread."""
        shared = iter(range(len(thread.shared)))
        own = iter(range(len(thread.globals)))
        arguments = [INDEX]
        for parameter in thread.parameters:
            if parameter.shared:
                arguments.append(f"&ends[{next(shared)}]")
            else:
                value = f"((const struct {_globals(thread)} *)globals)->g{next(own)}"
                arguments.append(f"{_back(parameter)}{value}")
        name = self.call_name(thread)
        parameters = f"long {INDEX}, const void *globals, struct svp_end *ends"
        body = f"(void)globals; (void)ends; {thread.name}({', '.join(arguments)});"
        return f" void {name}({parameters}); void {name}({parameters}) {{ {body} }}"

    def _main_call(self, thread: Thread) -> str:
        name = "svpc_program"
        parameters = "long index, int argc, char **argv"
        given = "index, argc, argv" if thread.parameters else "index"
        body = f"(void)argc; (void)argv; {MAIN}({given});"
        return f" void {name}({parameters}); void {name}({parameters}) {{ {body} }}"

    # ---- Bodies --------------------------------------------------------------------------------

    def _function(self, function: Function) -> None:
        for variable in function.indices:
            self._name_piece(variable.cursor).after.append(f" __attribute__((unused)) = {INDEX}")
        for family in function.families:
            self._family(family.cursor)
        for use in function.uses.values():
            self._use(use)
        for create in function.creates.values():
            self._create(create)
        for operation in function.operations.values():
            self._operation(operation)
        # The words that declare them.
        for piece in self.source.pieces_in(tree.start(function.body), tree.end(function.body)):
            if piece.mark == "svp_index_type":
                piece.final = "const long"

    def _family(self, cursor: Cursor) -> None:
        name = cursor.spelling
        begun = f"svpc_begun_{self._name_piece(cursor).number}"
        count = f"sizeof {name} / sizeof(svp_family)"
        self._last_piece(cursor).after.append(
            f" {CLEANUP}, *{begun} __attribute__((unused)) = svp_begin((svp_family *)&{name}, {count})"
        )

    def _use(self, use: Use) -> None:
        if use.kind == "pass":
            return  # with its create
        name = use.parameter.name
        end, type_ = _end(name), _type(use.thread, use.parameter)
        site = self._site(self._first_piece(use.name), name)
        read = f"(*(const {type_} *)svp_read({end}, {site}))"
        if use.kind == "read":
            self._replace(use.cursor, read)
            return
        opening = f"(*({type_} *)svp_write({end}, ({type_}[1]){{"
        closing = f"}}, {site}))"
        if use.kind == "step":
            operator = tree.STEPS[tree.unary(use.cursor)]
            text = f"{opening} {read} {operator} 1 {closing}"
            if tree.unary(use.cursor) in tree.POST:
                text = f"({text}, *(const {type_} *)svp_read_again({end}, {site}))"
            self._replace(use.cursor, text)
            return
        target, value = tree.children(use.cursor)
        head = self.source.pieces_in(tree.start(target), tree.start(value))
        operator = self.source.pieces_in(tree.end(target), tree.start(value))[0].spelling
        if operator == "=":
            self._replace_pieces(head, opening)
        else:
            self._replace_pieces(head, f"{opening} {read} {operator[:-1]} (")
            closing = f") {closing}"
        # In front of the text behind expressions around this one.
        self._last_piece(use.cursor).after.insert(0, closing)

    def _create(self, create: Create) -> None:
        words = create.words
        given = tuple(name for name in FIELDS if name in create.fields)
        family = self._text_of(create.family)
        file, line = self.source.line(words.word)
        function = CreateFunction(f"svpc_create_{self.prefix}_{len(self.creates)}", create.thread, given, file, line)
        self.creates.append(function)
        words.word.final = function.name
        words.open.final = "(&("
        site = self._site(words.word, family)
        edges = [*words.separators, words.close]
        for number, (is_given, edge) in enumerate(zip(words.given, edges, strict=True)):
            closing = ")" if is_given else ""
            following = number + 1 < len(words.given) and words.given[number + 1]
            edge.final = closing + (f", {site}" if number == 0 else "") + (", (" if following else "")
        words.callee.final = ""
        self._arguments(create)

    def _arguments(self, create: Create) -> None:
        words, thread = create.words, create.thread
        if not thread.parameters:
            words.call_open.final, words.call_close.final = ", (void *)0", ")"
            return
        pieces = self.source.pieces
        commas = top_level(pieces[words.call_open.number + 1 : words.call_close.number], ",")
        before, closing = f", &(struct {_arguments(thread)}){{ ", ""
        shared, own = iter(range(len(thread.shared))), iter(range(len(thread.globals)))
        for edge, parameter, argument in zip(
            [words.call_open, *commas], thread.parameters, create.arguments, strict=True
        ):
            if not parameter.shared:
                start, closing = f".globals.g{next(own)} = {_forth(parameter)}(", ")"
            elif self._is_passed_on(argument):
                start, closing = f".shared[{next(shared)}] = {{0, ", "}"
            else:
                start, closing = f".shared[{next(shared)}] = {{&(", "), 0}"
            edge.final = f"{before}{start}"
            before = f"{closing}, "
        words.call_close.final = f"{closing} }})"

    def _is_passed_on(self, argument: Cursor) -> bool:
        """Whether it is a shared parameter of the creator, which is then replaced."""
        for function in self.reader.functions:
            use = function.uses.get(tree.key(tree.peeled(argument)))
            if use and use.kind == "pass":
                self._replace(use.cursor, _end(use.parameter.name))
                return True
        return False

    def _operation(self, operation: Operation) -> None:
        if operation.name == "break":
            self._break(operation)
            return
        opening = self.source.pieces[operation.word.number + 1]
        site = self._site(operation.word, self._text_of(operation.argument))
        operation.word.final = f"svp_{operation.name}"
        opening.final = "(&("
        self._last_piece(operation.cursor).final = f"), {site})"

    def _break(self, operation: Operation) -> None:
        site = self._site(operation.word, "break")
        if operation.argument is not None:
            operation.word.final = "svp_break"
            self._last_piece(operation.cursor).final = f", {site})"
            return
        self._replace(operation.cursor, f"svp_break(0, {site})")

    # ---- Pieces --------------------------------------------------------------------------------

    def _text_of(self, cursor: Cursor) -> str:
        pieces = self.source.pieces_in(tree.start(cursor), tree.end(cursor))
        return "".join(piece.spelling for piece in pieces)

    def _first_piece(self, cursor: Cursor) -> Piece:
        return self.source.piece_of(tree.start(cursor))

    def _last_piece(self, cursor: Cursor) -> Piece:
        return self.source.pieces_in(tree.start(cursor), tree.end(cursor))[-1]

    def _name_piece(self, cursor: Cursor) -> Piece:
        return self.source.piece_of(cursor.location.offset)

    def _after(self, cursor: Cursor, text: str) -> None:
        self._last_piece(cursor).after.append(text)

    def _replace(self, cursor: Cursor, text: str) -> None:
        first = self._first_piece(cursor)
        pieces = [first, *self.source.pieces_in(tree.start(cursor), tree.end(cursor))]
        self._replace_pieces(list(dict.fromkeys(pieces)), text)

    @staticmethod
    def _replace_pieces(pieces: list[Piece], text: str) -> None:
        for piece in pieces:
            piece.final = ""
        pieces[0].final = text


# ---- Types and names of the generated C --------------------------------------------------------


def _end(name: str) -> str:
    return f"svpc_end_{name}"


def _type(thread: Thread, parameter: Parameter) -> str:
    return f"svpc_type_{thread.name}_{thread.shared.index(parameter)}"


def _globals(thread: Thread) -> str:
    return f"svpc_globals_{thread.name}"


def _arguments(thread: Thread) -> str:
    return f"svpc_arguments_{thread.name}"


def _is_function_pointer(parameter: Parameter) -> bool:
    pointee = parameter.type.get_canonical().get_pointee().kind
    return tree.is_pointer(parameter.type) and pointee in (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO)


def _member(parameter: Parameter, name: str) -> str:
    """The declaration of a kept global argument."""
    if _is_function_pointer(parameter):
        return f"void (*{name})(void)"
    kept = "const volatile void *" if tree.is_pointer(parameter.type) else tree.unqualified(parameter.type)
    return f"{kept} {name}"


def _forth(parameter: Parameter) -> str:
    if _is_function_pointer(parameter):
        return "(void (*)(void))"
    return "(const volatile void *)" if tree.is_pointer(parameter.type) else ""


def _back(parameter: Parameter) -> str:
    if _is_function_pointer(parameter):
        return f"({tree.unqualified(parameter.type)})"
    return "(void *)" if tree.is_pointer(parameter.type) else ""


def measures(type_: Type) -> tuple[int, int]:
    """Size and alignment of a parameter."""
    if tree.is_pointer(type_):
        return POINTER, POINTER
    return type_.get_size(), type_.get_align()


def layout(thread: Thread) -> tuple[int, int]:
    """Size and alignment of the global arguments."""
    at, largest = 0, 1
    for parameter in thread.globals:
        size, alignment = measures(parameter.type)
        at = -(-at // alignment) * alignment + size
        largest = max(largest, alignment)
    return -(-at // largest) * largest, largest
