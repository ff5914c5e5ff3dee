# SPDX-License-Identifier: Apache-2.0
import pytest
from tombolo.suite import judge
from tombolo.suite.runner import Setting, Verdict


def verdict(name: str, word: str, machine: str = "stale") -> Verdict:
    return Verdict(f"rma/{name}:2", f"rma/{name}", 2, "mpich", machine, 1, word, 0.5, 3, 1)


STOCK = {"rma/good:2": True, "rma/bad:2": False}
STALE = Setting("stale", 1)


def test_a_failure_that_the_stock_mpi_shares_is_not_ours():
    row = judge.summarize(STALE, [verdict("bad", "failed")], STOCK, {})
    assert (len(row.as_stock), len(row.unexpected)) == (1, 0)


def test_a_failure_that_the_stock_mpi_does_not_have_is_unexpected():
    row = judge.summarize(STALE, [verdict("good", "timeout")], STOCK, {})
    assert len(row.unexpected) == 1


def test_a_listed_failure_is_expected_on_stale_only():
    expected = {"rma/good": "a sentence"}
    assert len(judge.summarize(STALE, [verdict("good", "failed")], STOCK, expected).expected) == 1
    coherent = Setting("coherent")
    row = judge.summarize(coherent, [verdict("good", "failed", "coherent")], STOCK, expected)
    assert len(row.unexpected) == 1


def test_nothing_is_expected_to_crash():
    expected = {"rma/good": "a sentence"}
    for word, listed in (("crashed", 0), ("timeout", 1)):
        row = judge.summarize(STALE, [verdict("good", word)], STOCK, expected)
        assert (len(row.expected), len(row.unexpected)) == (listed, 1 - listed)


def test_a_pass_where_the_stock_mpi_fails_is_gained():
    assert len(judge.summarize(STALE, [verdict("bad", "passed")], STOCK, {}).gained) == 1


def test_an_unknown_stock_verdict_counts_against_us():
    assert len(judge.summarize(STALE, [verdict("new", "failed")], STOCK, {}).unexpected) == 1


def test_the_share_of_windows_served_is_over_all_tests():
    row = judge.summarize(STALE, [verdict("good", "passed")] * 2, STOCK, {})
    assert row.share == 0.75


def test_every_expected_failure_has_its_sentence():
    for key, sentence in judge.expected_failures().items():
        assert "/" in key
        assert len(sentence) > 40


def test_stock_verdicts_are_remembered(tmp_path):
    judge.StockVerdicts(tmp_path).learn(verdict("good", "passed", "stock"))
    assert judge.StockVerdicts(tmp_path).passes == {"rma/good:2": True}


def test_a_run_that_is_killed_leaves_the_verdicts_that_were_there(tmp_path, monkeypatch):
    judge.StockVerdicts(tmp_path).learn(verdict("good", "passed", "stock"))

    def killed(path, content):
        with path.open("w"):
            raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.write_bytes", killed)
    with pytest.raises(KeyboardInterrupt):
        judge.StockVerdicts(tmp_path).learn(verdict("other", "passed", "stock"))
    assert judge.StockVerdicts(tmp_path).passes == {"rma/good:2": True}


def test_a_stock_pass_is_not_forgotten_when_the_host_is_busy(tmp_path):
    stock = judge.StockVerdicts(tmp_path)
    stock.learn(verdict("good", "passed", "stock"))
    stock.learn(verdict("good", "timeout", "stock"))
    assert stock.passes == {"rma/good:2": True}
