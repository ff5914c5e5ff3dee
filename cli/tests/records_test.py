# SPDX-License-Identifier: Apache-2.0
from tombolo import records


def test_records_need_no_git(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert records.commit() is None
