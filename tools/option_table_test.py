# SPDX-License-Identifier: Apache-2.0
"""The table of options is checked, and the page that is made of it is up to date."""

import subprocess
import sys
from pathlib import Path

import option_table
import pytest
from option_table import Mistake

ROWS = """
[interface.farm]
header = "farm/farm_options.h"
namespace = "tombolo::farm"
struct = "FarmOptions"

[[option]]
variable = "TOMBOLO_FARM_CROP"
type = "choice"
choices = ["late-rye", "oats"]
default = "oats"
interface = "farm"
field = "crop"
enum = "Crop"
text = "the crop"

[[option]]
variable = "TOMBOLO_FARM_FIELDS"
type = "number"
most = 9
interface = "farm"
field = "fields"
text = "the fields"
"""


@pytest.fixture
def root(tmp_path: Path):
    """A tree with such a table."""
    (tmp_path / "base").mkdir()

    def write(text: str) -> Path:
        (tmp_path / option_table.TABLE).write_text(text)
        return tmp_path

    return write


def test_the_page_of_settings_is_the_tables():
    page = (option_table.ROOT / option_table.PAGE).read_text()
    assert page == option_table.page(option_table.load()), "write the page anew: tools/option_table.py page"


def test_a_field_has_the_type_and_the_default_of_its_option(root):
    made = option_table.headers(option_table.load(root(ROWS)))
    text = made["farm/farm_options.h"]
    for line in (
        "enum class Crop : std::uint8_t { late_rye, oats };",
        "Crop crop = Crop::oats;",
        "std::optional<std::uint32_t> fields{};",
        "visit(tombolo::options::farm_crop, values.crop);",
    ):
        assert line in text
    assert 'choices_of_farm_crop[] = {"late-rye", "oats"};' in made["base/option_table.h"]
    assert '.values = "a number from 0 to 9"' in made["base/option_table.h"]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('text = "the crop"', "", "TOMBOLO_FARM_CROP has no text"),
        ('"TOMBOLO_FARM_FIELDS"', '"TOMBOLO_FARM_CROP"', "TOMBOLO_FARM_CROP has two rows"),
        ("most = 9", "greatest = 9", "TOMBOLO_FARM_FIELDS: there is no field greatest"),
        ("most = 9", "most = 9\nmore = 4", "TOMBOLO_FARM_FIELDS: more is added to the number of a flag"),
        (
            '"TOMBOLO_FARM_FIELDS"',
            '"TOMBOLO_FARM_AREA"\nformerly = "TOMBOLO_FARM_CROP"',
            "TOMBOLO_FARM_CROP has two rows",
        ),
        ("most = 9", "most = 9\ndefault = 10", "TOMBOLO_FARM_FIELDS: the default 10 is none of its values"),
        ('default = "oats"', 'default = "rye"', "TOMBOLO_FARM_CROP: the default rye is none of its values"),
        ('type = "number"', 'type = "count"', "TOMBOLO_FARM_FIELDS: the type is one of choice, names, switch"),
        ('choices = ["late-rye", "oats"]', "", "TOMBOLO_FARM_CROP: a choice option has choices"),
        ('enum = "Crop"', "", "TOMBOLO_FARM_CROP: the field of a choice has an enum or a kind"),
        ('field = "fields"', "", "TOMBOLO_FARM_FIELDS: a field is a member of an interface that the table has"),
        ("most = 9", 'most = 9\nflag = "--fields"', "TOMBOLO_FARM_FIELDS: a flag and its help go together"),
    ],
)
def test_a_row_that_means_nothing_is_refused_by_the_name_of_its_option(root, before, after, sentence):
    assert before in ROWS
    with pytest.raises(Mistake) as refused:
        option_table.load(root(ROWS.replace(before, after)))
    assert str(refused.value).startswith(sentence)


def test_headers_that_stay_as_they_are_are_not_touched(tmp_path):
    command = [sys.executable, option_table.__file__, "headers", tmp_path]
    subprocess.run(command, check=True)
    header = tmp_path / option_table.CONSTANTS
    before = header.stat().st_mtime_ns
    subprocess.run(command, check=True)
    assert header.stat().st_mtime_ns == before
