# SPDX-License-Identifier: Apache-2.0
"""Loads of sync words keep behind the atomics before them (R3): an acquire load need not, since Arm has LDAPR for it.

No x86 processor shows the difference, so the compiler's intermediate code is looked at."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADS = """
#include <atomic>
#include "{header}"
using Core = tombolo::{core};
std::uint64_t of_core(Core& core, Core::Word word) {{ return core.load(word); }}
std::uint64_t of_acquire(std::atomic<std::uint64_t>& word) {{ return word.load(std::memory_order_acquire); }}
"""


@pytest.mark.parametrize(
    ("header", "core"),
    [
        ("backends/coherent/coherent.h", "coherent::Core"),
        ("backends/flushed/flushed.h", "flushed::Core<tombolo::machine::Atomics::full>"),
    ],
)
def test_loads_of_words_are_ordered_behind_atomics(tmp_path: Path, header: str, core: str) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("no clang++")
    source = tmp_path / "loads.cpp"
    source.write_text(LOADS.format(header=header, core=core))
    flags = ["-std=c++20", "-O1", "-S", "-emit-llvm", "-o", "-", f"-I{ROOT}", "-DFMT_HEADER_ONLY"]
    text = subprocess.run(["clang++", *flags, source], capture_output=True, text=True, check=True).stdout
    orders = {
        name: re.findall(r"load atomic .*?(\w+), align", body)
        for name, body in re.findall(r"define [^@]*@_Z\d+(of_[a-z]+)\w*\([^{]*\{(.*?)\n\}", text, re.DOTALL)
    }
    assert orders == {"of_core": ["seq_cst"], "of_acquire": ["acquire"]}
