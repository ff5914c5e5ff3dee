# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from tombolo.suite import source


def test_deb_entries_in_both_formats_become_deb_src(tmp_path: Path):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "debian.sources").write_text("Types: deb\nURIs: mirror\nSuites: bookworm\n")
    (parts / "more.list").write_text("# deb no\ndeb [arch=amd64] mirror bookworm main\n")
    (parts / "old.list.disabled").write_text("deb mirror x y\n")
    (tmp_path / "sources.list").write_text("deb mirror bookworm main\ndeb-src mirror bookworm main\n")
    assert source.source_entries(tmp_path) == {
        "debian.sources": "Types: deb-src\nURIs: mirror\nSuites: bookworm\n",
        "more.list": "deb-src [arch=amd64] mirror bookworm main\n",
        "sources.list": "deb-src mirror bookworm main\n",
    }


def test_removed_type_constructors_get_their_new_names(tmp_path: Path):
    path = tmp_path / "a.c"
    path.write_text("MPI_Type_hvector(1); MPI_Type_create_struct(2); MPI_Type_struct(3);\n")
    source.modernize(tmp_path)
    assert path.read_text() == ("MPI_Type_create_hvector(1); MPI_Type_create_struct(2); MPI_Type_create_struct(3);\n")
