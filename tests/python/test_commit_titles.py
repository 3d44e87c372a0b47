"""The check of commit titles."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "commit_titles.py"
SPEC = importlib.util.spec_from_file_location("commit_titles", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
commit_titles = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(commit_titles)


@pytest.mark.parametrize(
    "title",
    [
        "route: take the lower envelope",
        "results, cc: record OpenACC suites on an H200",
        "jobs.store: pass late samples on",
        "Merge branch 'main' into work",
        "x: " + "a" * 69,
    ],
)
def test_a_title_with_component_and_imperative_is_accepted(title: str) -> None:
    assert commit_titles.fault(title) == ""


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("take the lower envelope", "begin with the component"),
        ("", "begin with the component"),
        ("Route: take the lower envelope", "begin with the component"),
        ("route:take the lower envelope", "begin with the component"),
        ("x: " + "a" * 70, "it has 73 columns"),
        ("cc: a shadow may be 0 at run time", "no verb"),
        ("route: takes the lower envelope", "not imperative"),
        ("route: added the envelope", "not imperative"),
        ("route: adding the envelope", "not imperative"),
        ("route: take the lower envelope.", "full stop"),
    ],
)
def test_another_title_is_refused_with_the_reason(title: str, reason: str) -> None:
    assert reason in commit_titles.fault(title)


def test_the_title_is_the_first_line_that_is_no_comment() -> None:
    assert commit_titles.title_of("# comment\n\nroute: take it  \n\nbody\n") == "route: take it"
