#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the headers of C++ and the page of settings of the table of options, base/options.toml.

    tools/option_table.py headers FOLDER    headers of C++: base/option_table.h, and one for each interface
    tools/option_table.py page [FILE]       the page docs/settings.md

The build has the headers written when it is configured. A file that would stay as it is is not touched.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = "base/options.toml"
PAGE = "docs/settings.md"
CONSTANTS = "base/option_table.h"

LARGEST = 2**64 - 1
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
SWITCH = ["on", "off"]
TYPES = ("choice", "names", "switch", "number", "size", "path", "folder", "text")
FIELDS = {
    "variable", "formerly", "info_key", "text", "type", "choices", "values", "on", "least", "most", "default", "unset",
    "interface", "field", "enum", "kind", "reader", "flag", "help", "word", "more", "machine",
}  # fmt: skip


class Mistake(Exception):
    """The table says something that means nothing."""


def load(root: Path = ROOT) -> dict:
    """The table, checked: {"interface": {name: ...}, "option": [...]}."""
    table = tomllib.loads((root / TABLE).read_text())
    seen: set[str] = set()
    for row in table["option"]:
        check(row, table["interface"])
        for name in filter(None, (row.get("variable"), row.get("formerly"), row.get("info_key"))):
            if name in seen:
                raise Mistake(f"{name} has two rows")
            seen.add(name)
    return table


def name_of(row: dict) -> str:
    return row.get("variable") or row.get("info_key") or ""


def check(row: dict, interfaces: dict) -> None:
    """A Mistake for a row that lacks something, or has a field that means nothing."""
    name = name_of(row)
    if not name:
        raise Mistake(f"an option has neither a variable nor an info key: {row}")
    if unknown := row.keys() - FIELDS:
        raise Mistake(f"{name}: there is no field {', '.join(sorted(unknown))}")
    if row.get("type") not in TYPES:
        raise Mistake(f"{name}: the type is one of {', '.join(TYPES)}")
    if not row.get("text"):
        raise Mistake(f"{name} has no text")
    check_values(name, row)
    check_field(name, row, interfaces)
    check_flag(name, row)


def check_values(name: str, row: dict) -> None:
    if row["type"] in ("choice", "names") and not row.get("choices"):
        raise Mistake(f"{name}: a {row['type']} option has choices")
    if row["type"] == "text" and not row.get("values"):
        raise Mistake(f"{name}: values says what the text may be")
    if "default" in row and not is_value(row, row["default"]):
        raise Mistake(f"{name}: the default {row['default']} is none of its values")


def check_field(name: str, row: dict, interfaces: dict) -> None:
    if ("interface" in row) != ("field" in row) or row.get("interface") not in (None, *interfaces):
        raise Mistake(f"{name}: a field is a member of an interface that the table has")
    if row["type"] == "choice" and "field" in row and ("enum" in row) == ("kind" in row):
        raise Mistake(f"{name}: the field of a choice has an enum or a kind")


def check_flag(name: str, row: dict) -> None:
    if ("flag" in row) != ("help" in row):
        raise Mistake(f"{name}: a flag and its help go together")
    if "more" in row and not (row["type"] == "number" and "flag" in row and "most" in row):
        raise Mistake(f"{name}: more is added to the number of a flag, up to the most")


def is_value(row: dict, value: object) -> bool:
    if row["type"] in ("choice", "switch"):
        return value in choices(row)
    if row["type"] in ("number", "size"):
        return least(row) <= number(value) <= most(row)
    return isinstance(value, str)


def number(value: object) -> int:
    """Of a number, or of a size such as 512MiB."""
    if isinstance(value, int):
        return value
    text = str(value)
    return int(text[:-3]) * UNITS[text[-3:]]


def least(row: dict) -> int:
    return number(row.get("least", 0))


def most(row: dict) -> int:
    return number(row.get("most", LARGEST))


def choices(row: dict) -> list[str]:
    return row.get("choices") or (SWITCH if row["type"] == "switch" else [])


def values(row: dict) -> str:
    """The allowed values in words."""
    if "values" in row:
        return row["values"]
    if row["type"] in ("choice", "switch"):
        return ", ".join(choices(row))
    if row["type"] == "names":
        return f"{', '.join(choices(row))}, or several of them between commas"
    if row["type"] == "number":
        return f"a number from {least(row)}" + (f" to {row['most']}" if "most" in row else "")
    if row["type"] == "size":
        bounds = f" from {row['least']} to {row['most']}," if "least" in row else ""
        return f"a size{bounds} such as 512MiB"
    return f"a {row['type']}"


# --- C++ ------------------------------------------------------------------------------------------


def constant(row: dict) -> str:
    """The name of its constant in the namespace tombolo::options."""
    return name_of(row).removeprefix("TOMBOLO_").lower()


def quoted(text: object) -> str:
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def constants(table: dict) -> str:
    lines = [
        head("all options, as constants", "plain constants"),
        '#include "base/options.h"\n\nnamespace tombolo::options {\n',
    ]
    for row in table["option"]:
        members = [f".{key} = {quoted(row[key])}" for key in ("variable", "formerly", "info_key") if key in row]
        members.append(f".type = OptionType::{'toggle' if row['type'] == 'switch' else row['type']}")
        if choices(row):
            names = ", ".join(map(quoted, choices(row)))
            lines.append(f"inline constexpr std::string_view choices_of_{constant(row)}[] = {{{names}}};")
            members.append(f".choices = choices_of_{constant(row)}")
        members.append(f".values = {quoted(values(row))}")
        if "on" in row:
            members.append(f".on = {quoted(row['on'])}")
        if row["type"] in ("number", "size"):
            members += [f".least = {least(row)}u", f".most = {most(row)}u"]
        members.append(f".reader = OptionReader::{row.get('reader', 'library')}")
        lines.append(f"inline constexpr Option {constant(row)}{{{', '.join(members)}}};")
    names = ", ".join(f"&{constant(row)}" for row in table["option"])
    lines.append(f"\ninline constexpr const Option* all[] = {{{names}}};\n\n}}  // namespace tombolo::options\n")
    return "\n".join(lines)


def structure(table: dict, name: str) -> str:
    """The header of an interface's structure."""
    interface = table["interface"][name]
    rows = [row for row in table["option"] if row.get("interface") == name]
    includes = "".join(f'#include "{header}"\n' for header in ["base/option_table.h", *interface.get("includes", [])])
    struct = interface["struct"]
    lines = [
        head(f"the options of the interface `{name}`, by name", "plain values"),
        "#include <cstdint>\n#include <optional>\n#include <string>\n",
        f"{includes}\nnamespace {interface['namespace']} {{\n",
        *(enumeration(row) for row in rows if "enum" in row),
        f"struct {struct} {{",
        *(f"  {kind(row)} {row['field']}{initial(row)};" for row in rows),
        "};\n",
        "// Calls visit(option, field) for each.",
        "template <class Visit>",
        f"void for_each_option({struct}& values, Visit&& visit) {{",
        *(f"  visit(tombolo::options::{constant(row)}, values.{row['field']});" for row in rows),
        f"}}\n\n}}  // namespace {interface['namespace']}\n",
    ]
    return "\n".join(lines)


def head(purpose: str, safety: str) -> str:
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"// Purpose: {purpose}. tools/option_table.py writes it from {TABLE}.\n"
        f"// Thread safety: {safety}.\n#pragma once\n"
    )


def enumerator(choice: str) -> str:
    return choice.replace("-", "_")


def enumeration(row: dict) -> str:
    return f"enum class {row['enum']} : std::uint8_t {{ {', '.join(map(enumerator, row['choices']))} }};\n"


def plain_kind(row: dict) -> str:
    if row["type"] == "choice":
        return row.get("kind") or row["enum"]
    if row["type"] == "switch":
        return "bool"
    if row["type"] == "number":
        return "std::uint32_t" if most(row) < 2**32 else "std::uint64_t"
    return "std::uint64_t" if row["type"] in ("size", "names") else "std::string"


def is_optional(row: dict) -> bool:
    return "default" not in row and row["type"] != "names" and plain_kind(row) != "std::string"


def kind(row: dict) -> str:
    return f"std::optional<{plain_kind(row)}>" if is_optional(row) else plain_kind(row)


def initial(row: dict) -> str:
    if "default" not in row:
        return "{}"
    if row["type"] == "switch":
        return " = true" if row["default"] == choices(row)[0] else " = false"
    if row["type"] == "choice":
        place = row["choices"].index(row["default"])
        return f" = {row['enum']}::{enumerator(row['default'])}" if "enum" in row else f" = {row['kind']}({place})"
    if row["type"] in ("number", "size"):
        return f" = {number(row['default'])}u"
    return f" = {quoted(row['default'])}"


# --- The page -------------------------------------------------------------------------------------

HEAD = f"""# Settings

This page is written by `tools/option_table.py` from the table of options (`{TABLE}`), which the libraries and the
command `tombolo` read as well; a test compares the two.

An environment variable holds for all windows of a process. An info key holds for the window that is created
with it, and wins over the variable. An option of the command sets the variable for the program that it starts.
`on` and `off` may also be written `1` and `0`, `true` and `false`, `yes` and `no`. A program with a variable whose
value is not understood, whichever interface reads it, is ended with a message when it creates its first window;
without windows the message is all. So is one with a variable that has nearly the name of a setting, such as
`TOMBOLO_MACHIN`, or the name that one had before. With an instruction of `TOMBOLO_FLUSH` that this host does not have,
windows on `flushed` cannot be created. Info keys are hints: one that is not understood is reported once, and ignored.

| environment | info key | option | values | initially | meaning |
|---|---|---|---|---|---|
"""

OF_COMMAND = """
The command `tombolo` and the experiments on the simulated chip read besides:

| environment | values | meaning |
|---|---|---|
"""


def code(text: object) -> str:
    return f"`{text}`" if text not in (None, "") else ""


def cell_of_values(row: dict) -> str:
    return values(row) if "values" in row else ", ".join(map(code, choices(row))) or values(row)


def cell_of_flag(row: dict) -> str:
    if "flag" not in row:
        return ""
    more = f", and {row['more']} more" if "more" in row else ""
    return f"{code(row['flag'])} of {', '.join(map(code, row['help']))}{more}"


def page(table: dict) -> str:
    libraries = others = ""
    for row in table["option"]:
        if "reader" in row:
            others += f"| {code(row['variable'])} | {cell_of_values(row)} | {row['text']} |\n"
        else:
            cells = (
                code(row.get("variable")), code(row.get("info_key")), cell_of_flag(row), cell_of_values(row),
                code(row.get("default")), row["text"],
            )  # fmt: skip
            libraries += f"| {' | '.join(cells)} |\n"
    return HEAD + libraries + OF_COMMAND + others


# --------------------------------------------------------------------------------------------------


def header_names(table: dict) -> list[str]:
    """Those of C++, as they are included."""
    return [CONSTANTS, *(interface["header"] for interface in table["interface"].values())]


def headers(table: dict) -> dict[str, str]:
    """The text of each, by its name."""
    made = [constants(table), *(structure(table, name) for name in table["interface"])]
    return dict(zip(header_names(table), made, strict=True))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main(words: list[str]) -> int:
    try:
        table = load()
    except (Mistake, tomllib.TOMLDecodeError) as mistake:
        print(f"{TABLE}: {mistake}", file=sys.stderr)
        return 1
    if words[:1] == ["headers"] and len(words) == 2:
        for name, text in headers(table).items():
            write(Path(words[1]) / name, text)
    elif words[:1] == ["page"] and len(words) <= 2:
        write(Path(words[1]) if len(words) > 1 else ROOT / PAGE, page(table))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
