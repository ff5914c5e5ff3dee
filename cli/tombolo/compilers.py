# SPDX-License-Identifier: Apache-2.0
"""`tombolo-cc` and `tombolo-c++`: clang with store instrumentation for virtual shared memory.

They take clang's arguments, and some of their own (HELP). A checkout calls them `./tombolo dsm cc` and
`./tombolo dsm c++`.

A compiler is started for each source: nothing is imported here that a compilation does not need.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tombolo import ending, hints, libraries, paths
from tombolo.errors import UserError

VARIANTS = ("static", "full", "page")
HELP = """\
Usage: {name} [OPTIONS] [OPTIONS OF CLANG] FILE...

Compiles a Pthreads program for virtual shared memory, by {clang}: stores in spans (under locks) are
recorded, and atomic operations call the runtime. The program also runs under Pthreads as usual.

  --tombolo-stores=static   record the stores that may be in a span, by an analysis of each source (default)
  --tombolo-stores=full     record each store of a thread that is in a span
  --tombolo-stores=page     record none: what changes travels by whole pages
  --tombolo-report[=FILE]   tell the fate of each store: text on standard error, or a line of JSON
                            for each source, added to FILE
  --tombolo-begins=NAME     the function NAME of yours begins a span, as pthread_mutex_lock does
  --tombolo-ends=NAME       the function NAME of yours ends a span, as pthread_mutex_unlock does
  --help                    show this text

All other options are those of {clang}. To see them: {name} --help-hidden, or {clang} --help
"""
# With one of these clang links nothing.
ENDS_EARLIER = re.compile(
    r"-[cSEM]|-MM|-fsyntax-only|--?version|--?help(-hidden)?|-dump(machine|version)|--?print-.*"
    r"|--?analyze|-emit-ast|--precompile|-cc1(as)?|--autocomplete=.*"
)
# Their value is the next argument.
WITH_VALUE = {
    "-o", "-x", "-I", "-D", "-U", "-L", "-F", "-T", "-u", "-z", "-e", "-MF", "-MT", "-MQ", "-MJ", "-arch",
    "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-iwithprefix",
    "-iwithprefixbefore", "-isysroot", "-target", "-Xclang", "-Xpreprocessor", "-Xassembler", "-Xanalyzer",
    "-mllvm", "-B", "--param", "-imultilib", "-ivfsoverlay", "-gcc-toolchain", "--sysroot", "-resource-dir",
    "-dumpdir", "--config",
}  # fmt: skip
# A pattern that no remark of clang matches: it has clang keep the lines of instructions without
# writing them to the object file.
KEEP_LINES = "-Rpass-missed=^tombolo-stores$"
PLUGIN = re.compile(r"tombolo_stores-(\d+)\.so$")


@dataclass
class Request:
    """The arguments of one call."""

    stores: str = "static"
    report: str | None = None
    plugin: list[str] = field(default_factory=list)
    clang: list[str] = field(default_factory=list)


def cc() -> None:
    """The entry point of `tombolo-cc`."""
    main("clang", "tombolo-cc", sys.argv[1:])


def cxx() -> None:
    """The entry point of `tombolo-c++`."""
    main("clang++", "tombolo-c++", sys.argv[1:])


def called(language: str) -> str:
    """The name by which a user calls the compiler of `cc` or `c++`."""
    return f"./tombolo dsm {language}" if paths.checkout() else f"tombolo-{language}"


def main(compiler: str, name: str, arguments: Sequence[str]) -> None:
    """Becomes clang."""
    with ending.in_order(name):
        if "--help" in arguments:
            print(HELP.format(name=name, clang=compiler), end="")
            sys.exit(0)
        command = command_line(compiler, arguments)
    os.execv(command[0], command)


def command_line(compiler: str, arguments: Sequence[str]) -> list[str]:
    request = parsed(arguments)
    plugin = need_plugin()
    if request.clang[:1] in (["-cc1"], ["-cc1as"]):  # clang calls itself
        return [str(clang_of(plugin, compiler)), *request.clang]
    command = [str(clang_of(plugin, compiler)), *options(plugin, request), *request.clang]
    if links(request.clang):
        # As an option of the linker: `-x` of the caller does not apply to it.
        command += ["-Xlinker", str(plugin.with_name("libtombolo_dsm_calls.a"))]
    return command


def parsed(arguments: Sequence[str]) -> Request:
    request = Request()
    for argument in arguments:
        name, given, value = argument.partition("=")
        if not name.startswith("--tombolo-"):
            request.clang.append(argument)
        elif name == "--tombolo-stores" and value in VARIANTS:
            request.stores = value
        elif name == "--tombolo-report" and (value or not given):
            request.report = os.path.abspath(value) if value else "-"
        elif name in ("--tombolo-begins", "--tombolo-ends") and value:
            request.plugin.append(f"-{name.removeprefix('--')}={value}")
        else:
            raise UserError(
                f"{argument}: there are --tombolo-stores={'|'.join(VARIANTS)}, --tombolo-report[=FILE], "
                "--tombolo-begins=NAME and --tombolo-ends=NAME"
            )
    return request


def options(plugin: Path, request: Request) -> list[str]:
    """Those that clang does not need for a step are no reason to warn."""
    to_plugin = [f"-tombolo-stores={request.stores}", *request.plugin]
    if request.report:
        to_plugin.append(f"-tombolo-report={request.report}")
    # By -Xclang: the assembler, which has no plugin, takes -mllvm as well.
    passed = [word for option in to_plugin for word in ("-Xclang", "-mllvm", "-Xclang", option)]
    # -fplugin loads it early enough for its options, -fpass-plugin adds its pass.
    return [
        "--start-no-unused-arguments",
        f"-fplugin={plugin}",
        f"-fpass-plugin={plugin}",
        *passed,
        KEEP_LINES,
        "--end-no-unused-arguments",
    ]


# --- Does clang link? -----------------------------------------------------------------------------


def links(arguments: Sequence[str]) -> bool:
    inputs = False
    words = expanded(arguments)
    for word in words:
        if ENDS_EARLIER.fullmatch(word):
            return False
        if word in WITH_VALUE:
            next(words, None)
        elif word in ("-Xlinker", "-l", "-framework"):
            next(words, None)
            inputs = True
        elif word == "-" or not word.startswith("-") or word.startswith(("-l", "-Wl,")):
            inputs = True
        elif word == "-r":  # its result is linked again
            return False
    return inputs


def expanded(arguments: Sequence[str], depth: int = 0) -> Iterator[str]:
    """With the words of response files in their places."""
    for argument in arguments:
        if argument.startswith("@") and depth < 10 and os.path.isfile(argument[1:]):
            with Path(argument[1:]).open(errors="replace") as file:
                yield from expanded(shlex.split(file.read()), depth + 1)
        else:
            yield argument


# --- Clang and the plugin -------------------------------------------------------------------------


def find_plugin() -> Path | None:
    """The plugin, for one version of clang."""
    for folder in libraries.compiler_folders():
        for plugin in sorted(folder.glob("tombolo_stores-*.so")):
            return plugin
    return None


def has_llvm() -> bool:
    """Whether the plugin can be built here."""
    return any(Path("/usr/lib").glob("llvm-*/include/llvm")) or bool(shutil.which("llvm-config"))


def need_plugin() -> Path:
    if plugin := find_plugin():
        return plugin
    if libraries.are_built_on_demand() and not has_llvm():
        raise UserError(f"the plugin of clang needs LLVM to be built: {hints.COMPILER}")
    return libraries.need_compiler(find_plugin)


def clang_of(plugin: Path, compiler: str) -> Path:
    """The clang of the plugin's version: its own name, its folder on Debian, or the one without a number."""
    match = PLUGIN.search(plugin.name)
    version = match[1] if match else ""
    for name in (f"{compiler}-{version}", f"/usr/lib/llvm-{version}/bin/{compiler}"):
        if found := shutil.which(name):
            return Path(found)
    found = shutil.which(compiler)
    if found and major(found) == version:
        return Path(found)
    raise UserError(f"there is no {compiler} of version {version}: {hints.COMPILER}")


def major(clang: str) -> str:
    done = subprocess.run([clang, "-dumpversion"], capture_output=True, text=True)
    return done.stdout.partition(".")[0]
