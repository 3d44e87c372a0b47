"""The suite's lists are parsed and judged like its own script does; docs/nic/mpi-suite.md has the records."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "mpi"))

import suite_page  # noqa: E402
from suite import Run, verdict  # noqa: E402
from testlist import LIMIT_S, Program, passed, read_line  # noqa: E402


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("", None),
        ("# win_large_shm 4", None),
        ("!../dtpools:all", None),
        ("winname 2", Program("rma", "winname", 2)),
        ("winname", Program("rma", "winname", 2)),
        ("manyget 2 timeLimit=300", Program("rma", "manyget", 2, limit_s=300)),
        ("test/mpi/rma/put 3 arg=-a=1 arg=-b", Program("rma", "put", 3, arguments=("-a=1", "-b"))),
        ("a 2 env=X=1 env=Y=2,3", Program("rma", "a", 2, environment={"X": "1", "Y": "2,3"})),
        ("a 1 strict=FALSE", Program("rma", "a", 1, only_mpich=True)),
        ("a 1 xfail=ticket1", Program("rma", "a", 1, known_to_fail=True)),
        ("a 1 resultTest=TestErrFatal", Program("rma", "a", 1, judged_by="TestErrFatal")),
    ],
)
def test_a_line_of_a_list(line: str, program: Program | None) -> None:
    assert read_line("rma", line) == program


def test_a_program_without_a_limit_has_the_suites() -> None:
    program = read_line("rma", "winname 2")
    assert program is not None
    assert program.limit_s == LIMIT_S


@pytest.mark.parametrize(
    ("judged_by", "status", "output", "good"),
    [
        ("", 0, " No Errors\n", True),
        ("", 0, "No errors\nTest Passed\n", True),
        ("", 0, "", False),
        ("", 1, " No Errors\n", False),
        ("", 0, "a warning\n No Errors\n", False),
        ("TestErrFatal", 1, "aborted\n", True),
        ("TestErrFatal", 0, "No Errors\n", False),
        ("TestStatusNoErrors", 1, "No Errors\n", True),
        ("TestStatusNoErrors", 1, "aborted\n", False),
    ],
)
def test_a_run_is_judged(judged_by: str, status: int, output: str, good: bool) -> None:
    assert passed(Program("rma", "a", 2, judged_by=judged_by), status, output) is good


@pytest.mark.parametrize(
    ("nic", "tcp", "alone", "message"),
    [
        ("+", "", "", "passed"),
        ("--", "-", "-", "fails without Peerway"),
        ("--", "-", "++", "fails over TCP of UCX"),
        ("--", "++", "++", "fails over the NIC"),
        ("--", "++", "+-", "fails over the NIC"),
        ("-+", "-", "-", "fails at times over the NIC"),
        ("..", ".", ".", "out of time"),
        ("..", "++", "++", "fails over the NIC"),
    ],
)
def test_a_failure_is_whose(nic: str, tcp: str, alone: str, message: str) -> None:
    def runs(signs: str) -> list[Run]:
        return [Run(sign == "+", 1.0, 1.0, "", late=sign == ".") for sign in signs]

    assert verdict({"nic": runs(nic), "tcp": runs(tcp), "alone": runs(alone)}) == message


def test_the_page_is_that_of_the_records() -> None:
    reasons = json.loads((suite_page.FOLDER / "reasons.json").read_text())
    page = suite_page.PAGE.read_text()
    assert suite_page.fill(page, suite_page.read(), reasons) == page
    assert "not looked into yet" not in page
