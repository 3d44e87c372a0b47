"""What `make test` says of the programs it runs: a test that failed is named, with the end of its output."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import checks
from checks import Totals

# A program of unit tests as GoogleTest's own are, for all that the checks see of it.
PROGRAM = """
import json, os, sys
index, total = int(os.environ["GTEST_SHARD_INDEX"]), int(os.environ["GTEST_TOTAL_SHARDS"])
tests = ["Good.Holds", "All/Bad.Holds/0", "Good.HoldsToo", "Good.IsSkipped"][index::total]
cases = []
for test in tests:
    suite, _, name = test.partition(".")
    print(f"[ RUN      ] {test}")
    case = {"name": name, "status": "RUN", "result": "COMPLETED"}
    if "Skipped" in test:
        case["result"] = "SKIPPED"
    if "Bad" in test:
        print("expected 1, found 2", flush=True)
        if ENDS:
            os.abort()
        case["failures"] = [{}]
        print(f"[  FAILED  ] {test}, where GetParam() = 0 (1 ms)")
    else:
        print(f"[       OK ] {test} (0 ms)")
    cases.append({"name": suite, "testsuite": [case]})
path = sys.argv[1].partition("json:")[2]
open(path, "w").write(json.dumps({"testsuites": cases}))
sys.exit(any("Bad" in test for test in tests))
"""


def run_tests(folder: Path, monkeypatch: pytest.MonkeyPatch, ends: bool, shards: int) -> Totals:
    program = folder / "tests" / "unit" / "unit"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nENDS = {ends}\n{textwrap.dedent(PROGRAM)}")
    program.chmod(0o755)
    monkeypatch.setattr(checks, "OUT", folder)
    totals = Totals()
    checks.unit_tests(totals, "unit-x", folder, shards=shards)
    return totals


@pytest.mark.parametrize("shards", [1, 2])
def test_a_unit_test_that_fails_is_named(
    shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    totals = run_tests(tmp_path, monkeypatch, ends=False, shards=shards)
    assert totals.line() == "2 passed, 1 failed, 1 skipped"
    (remark,) = totals.remarks
    assert "All/Bad.Holds/0" in remark
    assert "expected 1, found 2" in capfd.readouterr().out


def test_a_unit_test_that_ends_the_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals = run_tests(tmp_path, monkeypatch, ends=True, shards=2)
    assert totals.line() == "2 passed, 1 failed, 0 skipped"  # of the other shard
    (remark,) = totals.remarks
    assert "status -6 in All/Bad.Holds/0" in remark


def test_a_python_test_that_fails_is_shown_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text("def test_sums():\n    assert 1 + 1 == 3, 'sums are wrong'\n")
    monkeypatch.setattr(checks, "OUT", tmp_path)
    totals = Totals()
    checks.pytest(totals, "some", wrong, "-p", "no:cacheprovider")
    assert totals.line() == "0 passed, 1 failed, 0 skipped"
    assert any("test_sums" in remark for remark in totals.remarks)
    assert "sums are wrong" in capfd.readouterr().out
