# SPDX-License-Identifier: Apache-2.0
"""Writes the program's C++: a type for each thread that it creates, and a function for each create."""

import json

from clang.cindex import Type, TypeKind

from tombolo.svp_language import tree
from tombolo.svp_language.program import Thread
from tombolo.svp_language.writer import CreateFunction, Writer, layout

HEAD = '#include "tombolo/detail/svp/language/program.h"\n\nnamespace language = tombolo::svp::language;\n'
NUMBERS = {
    TypeKind.BOOL: "bool", TypeKind.CHAR_U: "char", TypeKind.CHAR_S: "char", TypeKind.SCHAR: "signed char",
    TypeKind.UCHAR: "unsigned char", TypeKind.SHORT: "short", TypeKind.USHORT: "unsigned short",
    TypeKind.INT: "int", TypeKind.UINT: "unsigned", TypeKind.LONG: "long", TypeKind.ULONG: "unsigned long",
    TypeKind.LONGLONG: "long long", TypeKind.ULONGLONG: "unsigned long long", TypeKind.FLOAT: "float",
    TypeKind.DOUBLE: "double", TypeKind.LONGDOUBLE: "long double",
}  # fmt: skip


def written(writer: Writer, creates: list[CreateFunction], has_main: bool) -> str:
    threads = {create.thread.name: create.thread for create in creates}
    parts = [HEAD]
    parts += [_thread(writer, thread) for thread in threads.values()]
    parts += [_create(create) for create in creates]
    if has_main:
        parts.append(_MAIN)
    return "\n".join(parts)


def _thread(writer: Writer, thread: Thread) -> str:
    name = writer.call_name(thread)
    size, alignment = layout(thread)
    values = "".join(f", {_value(parameter.type)}" for parameter in thread.shared)
    names = ", ".join(json.dumps(parameter.name) for parameter in thread.shared)
    shared = (
        f"  static constexpr std::array<const char*, {len(thread.shared)}> shared_names{{{names}}};\n"
        if thread.shared
        else ""
    )
    return (
        f'extern "C" void {name}(long index, const void* globals, svp_end* ends);\n'
        f"namespace {{\n"
        f"struct thread_{thread.name} : language::Thread<{name}, {size}, {alignment}{values}> {{\n"
        f"{shared}}};\n}}\n"
    )


def _create(create: CreateFunction) -> str:
    parameters = ["svp_family* family", "const svp_site* site", *create.parameters()]
    given = ["*family", "*site"]
    if "place" in create.given:
        given.append("place")
    if create.is_range:
        given.append(_range(create))
    where = f"#line {create.line} {json.dumps(create.file)}\n"
    return (
        f'{where}extern "C" void {create.name}({", ".join(parameters)}, const void* arguments) {{\n'
        f"  language::create<thread_{create.thread.name}>({', '.join([*given, 'arguments'])});\n}}\n"
    )


def _range(create: CreateFunction) -> str:
    casts = {"block": "static_cast<std::uint64_t>(block)"}
    fields = [f".{name} = {casts.get(name, name)}" for name in create.given if name != "place"]
    return f"tombolo::svp::Range{{{', '.join(fields)}}}"


def _value(type_: Type) -> str:
    """Of a shared parameter, in C++."""
    canonical = type_.get_canonical()
    if tree.is_pointer(type_):
        return "void*"
    if canonical.kind in NUMBERS:
        return NUMBERS[canonical.kind]
    return f"language::Bytes<{canonical.get_size()}, {canonical.get_align()}>"


_MAIN = """extern "C" void svpc_program(long index, int argc, char** argv);
int main(int argc, char** argv) { return language::run(&svpc_program, argc, argv); }
"""
