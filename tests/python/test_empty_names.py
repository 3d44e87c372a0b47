"""The check of names that say nothing of what they hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "names.py"
SPEC = importlib.util.spec_from_file_location("names", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
names = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(names)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("int left = 1;", ["left"]),
        ("void f(const char* what);\n", ["what"]),
        ("struct Told { bool asked_; };", ["Told", "asked_"]),
        ("found(1'000, 'x', \"one\");  // made", ["found"]),
        ("/* one\n two */ f(one);", ["one"]),
        ('R"(said)" said', ["said"]),
        ("error.what(); stream << std::left;", []),
        ('#include "transport/made.h"\n', []),
        ("one_folder = leftmost;", []),
    ],
)
def test_identifiers_of_cpp_are_told_from_comments_and_strings(code: str, words: list[str]) -> None:
    assert [word for _, word in names.empty_identifiers(Path("good.cpp"), code)] == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def f(found): one = 1", ["found"]),
        ("def _asked(): pass\nclass Told: pass", ["_asked"]),
        ("self._said = self.what", ["_said"]),
        ("class A:\n    made_: int\n    left_side: int", ["made_"]),
        ("class found:\n    what: int", ["found", "what"]),
        ("async def __told__(): pass", ["__told__"]),
    ],
)
def test_names_of_python_count_with_their_underscores(code: str, words: list[str]) -> None:
    assert [word for _, word in names.empty_names(Path("good.py"), code)] == words


def test_a_name_is_reported_with_its_line_and_a_file_by_its_first() -> None:
    code = "// one\nint a; /* two\nlines */ int found;\n"
    assert names.empty_identifiers(Path("found.h"), code) == [(1, "found"), (3, "found")]


def test_a_file_counts_for_the_longest_folder_that_has_a_number() -> None:
    allowed = {"library": 1, "library/src/team": 2}
    assert names.folder_of("library/src/team/bootstrap_server.cpp", allowed) == "library/src/team"
    assert names.folder_of("nic/uct/peer.h", allowed) == "nic"
