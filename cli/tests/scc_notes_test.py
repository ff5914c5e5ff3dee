# SPDX-License-Identifier: Apache-2.0
"""The notes beside the chip's parameters: where one derives a value from numbers, they give it; and
the share of tests among the experiments' sources."""

import re

import pytest
from tombolo import paths
from tombolo.scc import chips

CORE_PER_MESH = 533 / 800  # core cycles in a mesh cycle
LEAST_SHARE = 0.5

IMPLIED = {"2", "4", "12", "47", "800"}  # ways, doublewords and cores in words; ranks; memory cycles in a us

# Parameter, its value from the numbers of the note and from other parameters, and the distance that
# rounding leaves: half cycles for the core's own, some 20 cycles for code.
DERIVED = {
    "core.loop_core_cycles": ("(8 * 9.81 - 60.94) / 7 - load", 0.25),
    "core.miss_core_cycles": ("81.75 - 4.5 * 2 * hop - 45 - load", 0.3),
    "path.local_mpb_core_cycles": ("20 - load", 0.25),
    "path.bank_busy_memory_cycles": ("(90.9 - 18.3) / 31 / 4 / 12 * 800", 10),  # a compromise: this alone is 39
    "path.mpb_busy_core_cycles": ("32 / 8", 0),
    "operations.wbinvd_core_cycles": ("6386 - system_call", 0.25),
    "operations.wbinvd_valid_line_core_cycles": ("(12399 - 6386) / 512", 0.25),
    "operations.invd_valid_line_core_cycles": ("(6121 - 340) / 512", 0.25),
    "operations.flush_loop_core_cycles": ("26.3 - 18", 0.5),
    "software.convert_group_core_cycles": ("(1.6 - 8 * (5.1 - 1.6) / (47 - 8)) * core_megahertz", 1),
    "software.convert_rank_core_cycles": ("(5.1 - 1.6) / (47 - 8) * core_megahertz", 1),
    "software.library_call_core_cycles": ("(0.5 + 0.7) / 2 * core_megahertz", 54),  # 0.5 to 0.7
}  # fmt: skip


def known() -> dict[str, chips.Parameter]:
    return {each.name: each for each in chips.load(chips.DEFAULT).parameters}


@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_parameter_is_what_its_note_derives(name: str) -> None:
    formula, rounding = DERIVED[name]
    parameters = known()
    others = {
        "load": parameters["core.load_core_cycles"].value,
        "system_call": parameters["core.system_call_core_cycles"].value,
        "core_megahertz": parameters["clocks.core_megahertz"].value,
        "hop": parameters["mesh.hop_mesh_cycles"].value * CORE_PER_MESH,
    }
    value = eval(formula, {"__builtins__": {}}, others)  # of this file alone
    assert abs(parameters[name].value - value) <= rounding, value


@pytest.mark.parametrize("name", DERIVED)
def test_the_numbers_of_the_derivation_are_those_of_the_note(name: str) -> None:
    note = known()[name].source.replace(",", "")
    given = set(re.findall(r"\d+(?:\.\d+)?", note))
    used = set(re.findall(r"\d+(?:\.\d+)?", DERIVED[name][0]))
    assert used - IMPLIED <= given, note


def test_the_experiments_have_half_as_many_lines_of_tests_as_of_sources() -> None:
    root = paths.checkout()
    assert root is not None
    lines = {True: 0, False: 0}
    for file in (root / "experiments").rglob("*"):
        if file.suffix in (".cpp", ".h"):
            lines[file.name.endswith("_test.cpp")] += len(file.read_text().splitlines())
    assert lines[True] >= LEAST_SHARE * lines[False], lines
