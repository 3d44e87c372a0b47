"""What `make build` builds anew, and what `make test` says of the programs it runs: a test that failed is
named, with the end of its output.
"""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import checks
import class_names
import names
import setup
from checks import Totals

ROOT = Path(__file__).resolve().parents[2]

# Folders whose programs are built by the tests themselves, not by `make build`.
OF_TESTS = {"tests/unit", "library/tests/gpu/programs", "tests/fuzz"}


def test_an_edit_in_any_folder_that_is_built_builds_the_package_anew() -> None:
    added = set(re.findall(r"add_subdirectory\((\S+)\)", (ROOT / "CMakeLists.txt").read_text()))
    assert {"library/src", "nic/torus", "nic/uct", "xacc/runtime", "library/python/src"} <= added
    assert added >= OF_TESTS
    built_from = {ROOT / folder for folder in (*setup.BUILT_FROM, *OF_TESTS)}
    missed = {folder for folder in added if not built_from & {ROOT / folder, *(ROOT / folder).parents}}
    assert missed == set()


def test_names_of_classes_are_compared_also_where_a_word_of_one_meaning_is_nested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "library/src/plan.h": (
            "class Plan {\n  struct Lane {\n  };\n  struct Entry {\n  };\n};\nclass Route {\n};\n"
        ),
        "library/src/gpu.h": "class Gpu {\n  struct Lane {\n  };\n  struct Entry {\n  };\n};\n",
        "nic/uct/route.h": "class Route {\n};\n",
        "library/src/table.h": "struct Route {\n  class Lane* first;\n};\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(class_names, "ROOT", tmp_path)
    assert class_names.shared_names() == {
        "Lane": ["library/src/gpu.h", "library/src/plan.h"],
        "Route": ["library/src/plan.h", "library/src/table.h"],
    }


def test_names_that_say_nothing_are_listed() -> None:
    text = (
        "class Told:\n    one: int\n    def made(self, what: str) -> None:\n        self.left = what\n"
        "def rank(*, found: int) -> int:\n    one = found\n    return one\n"
    )
    assert names.empty_names(Path("asked.py"), text) == [
        (1, "asked"), (2, "one"), (3, "made"), (5, "found"), (3, "what"), (4, "left"),
    ]  # fmt: skip
    assert names.empty_names(Path("rank.py"), "def rank(peer):\n    found = peer\n") == []


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
    script = folder / "program.py"
    script.write_text(f"ENDS = {ends}\n{textwrap.dedent(PROGRAM)}")
    # Started by a shell, as a `#!` line cannot name an interpreter in a folder with a space.
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(script)])} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(checks, "OUT", folder)
    totals = Totals()
    checks.unit_tests(totals, "unit-x", folder, shards=shards)
    return totals


@pytest.mark.parametrize("shards", [1, 2])
def test_a_unit_test_that_fails_is_named(
    shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals = run_tests(tmp_path, monkeypatch, ends=False, shards=shards)
    assert totals.line() == "2 passed, 1 failed, 1 skipped"
    ((title, failures),) = totals.failures
    assert "All/Bad.Holds/0" in title
    assert failures == ["expected 1, found 2"]


def test_a_unit_test_that_ends_the_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals = run_tests(tmp_path, monkeypatch, ends=True, shards=2)
    assert totals.line() == "2 passed, 1 failed, 0 skipped"  # of the other shard
    ((title, failures),) = totals.failures
    assert "status -6 in All/Bad.Holds/0" in title
    assert "expected 1, found 2" in failures


def test_a_python_test_that_fails_is_shown_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text(
        "import pytest\n"
        "def test_sums():\n    assert 1 + 1 == 3, 'sums are wrong'\n"
        "def test_later():\n    pytest.skip('of no use here')\n"
    )
    monkeypatch.setattr(checks, "OUT", tmp_path)
    totals = Totals()
    # Without a root folder pytest names tests from the parent that the clone and the temporary folder share.
    checks.pytest(totals, "some", wrong, f"--rootdir={tmp_path}", "-ra", "-p", "no:cacheprovider")
    assert totals.line() == "0 passed, 1 failed, 1 skipped"
    totals.show()
    shown = capfd.readouterr().out
    assert shown.index("SKIPPED [1]") < shown.index("FAILED test_wrong.py::test_sums")
    assert "sums are wrong" in shown


@pytest.mark.parametrize(
    ("failed", "failed_again", "passed_alone"),
    [
        (["a.py::test_x"], [], ["a.py::test_x"]),
        (["a.py::test_x", "a.py::test_y[1]"], ["a.py::test_y[1]"], ["a.py::test_x"]),
        (["a.py::test_x"], ["again: pytest ended with status 2"], []),
        (["a.py::test_x", "unit: Lanes.Fit"], None, []),  # not only tests of Python
        ([f"a.py::test_{n}" for n in range(checks.MOST_AGAIN + 1)], None, []),
        ([], None, []),
    ],
)
def test_few_python_tests_that_failed_run_once_more(
    failed: list[str],
    failed_again: list[str] | None,
    passed_alone: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.py").touch()
    totals, runs = Totals(passed=10), []
    for name in failed:
        totals.fail(name, "why")

    def run(again: Totals, name: str, *options: object) -> None:
        runs.append((name, *options))
        for test in failed_again or []:
            again.fail(test, "why")

    monkeypatch.setattr(checks, "ROOT", tmp_path)
    monkeypatch.setattr(checks, "pytest", run)
    checks.run_again(totals)
    assert runs == ([] if failed_again is None else [("again", *failed, "--long")])
    assert totals.passed_alone == passed_alone
    assert totals.passed == 10 + len(passed_alone)
    assert [name for name, _ in totals.failures] == [f"FAILED {n}" for n in failed if n not in passed_alone]


def test_a_run_of_python_tests_that_ends_otherwise_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = tmp_path / "test_none.py"
    none.write_text("")
    monkeypatch.setattr(checks, "OUT", tmp_path)
    totals = Totals()
    checks.pytest(totals, "some", none, "-p", "no:cacheprovider")
    ((title, _),) = totals.failures
    assert title == "FAILED some: pytest ended with status 5, see out/test/some.log"
    assert totals.line() == "0 passed, 1 failed, 0 skipped"
