"""The scanner of directives: tokens, constants, and that any text gives either a directive or an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import MAPPED, compiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peerway_xacc.frontend import grammar_acc, grammar_xmp
from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.preprocess import Pragma
from peerway_xacc.frontend.tokens import Text, Token, joined, scan


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("t(0:N-1)", ["t", "(", "0", ":", "N", "-", "1", ")"]),
        ("a[i+1] // the rest", ["a", "[", "i", "+", "1", "]"]),
        ("x/* a\n b */y", ["x", "y"]),
        ("1.5e-3f+0x1p-2", ["1.5e-3f", "+", "0x1p-2"]),
        ("\"a \\\" b\" '\\''", ['"a \\" b"', "'\\''"]),
        ("a<<=b->c...", ["a", "<<=", "b", "->", "c", "..."]),
        ("+ \\\n :s", ["+", ":", "s"]),
        ('"open\nnext', ['"open', "next"]),
        ("/* open", []),
    ],
)
def test_tokens_are_those_of_c(text: str, tokens: list[str]) -> None:
    assert [span.text for span in scan(text)] == tokens


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("-7 / 2", -3), ("-7 % 2", -1), ("1 << 4 | 1", 17),
        ("010", 8), ("0x1fUL", 31), ("1 ? 2 : 3", 2), ("0 ? 2 : 1 ? 4 : 5", 4), ("!3 + ~0", -1),
        ("3 > 2 == 1", 1), ("1 / 0", None), ("N", None), ("1 +", None), ("", None), ("1 << 99", None),
        ("08", None), ("2.5", None), ("(1", None), ("sizeof(int)", None),
    ],
)  # fmt: skip
def test_constants_have_the_values_of_c(text: str, value: int | None) -> None:
    assert value_of([span.text for span in scan(text)]) == value


def test_edits_leave_all_other_text() -> None:
    edits = Edits(Text("f.c", "int a; int b;\n"))
    edits.replace(4, 5, "first")
    edits.before(7, "/* 1 */")
    edits.before(7, "/* 2 */")
    edits.behind(13, " inner }")
    edits.behind(13, " } later asked, nearer")
    edits.replace(4, 5, "first")
    assert edits.text() == "int first; /* 1 *//* 2 */int b; } later asked, nearer inner }\n"


_WORDS = """nodes template distribute align shadow loop reflect reduction bcast task on gmove width periodic
with onto block cyclic gblock parallel data collapse private present kernels atomic async wait post coarray
( ) [ ] : , * / + - ? = i a t p N 0 1 17 "x" { } ; # \\ % max"""
WORDS = st.sampled_from(_WORDS.split())


@given(st.sampled_from(["xmp", "acc"]), st.lists(WORDS, max_size=14))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_any_words_are_a_directive_or_an_error_with_a_place(model: str, words: list[str]) -> None:
    place = Place("f.c", 1, 1, 3)
    tokens = []
    column = 5
    for word in words:
        kind = "name" if word[0].isalpha() else "number" if word[0].isdigit() else "mark"
        tokens.append(Token(kind, word, Place("f.c", 1, column, len(word))))
        column += len(word) + 1
    pragma = Pragma(model, "f.c", 0, column, place, tuple(tokens))
    try:
        (grammar_xmp if model == "xmp" else grammar_acc).parse(pragma)
    except Refused as refused:
        error = refused
    else:
        return
    assert error.place.line == 1
    assert 1 <= error.place.column <= column
    assert error.message


@given(st.text())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_text_has_tokens_that_cover_it(text: str) -> None:
    text = text.encode("utf-8", errors="replace").decode("latin-1")
    end = 0
    for span in scan(text):
        assert end <= span.start < span.end <= len(text)
        end = span.end
    assert [span.text for span in scan(joined(["a", *["+", "b"] * 3]))] == ["a", *["+", "b"] * 3]


@given(st.lists(st.lists(WORDS, max_size=10), min_size=3, max_size=3))
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_with_any_text_in_directives_the_compiler_ends_with_a_status(
    tmp_path: Path, lines: list[list[str]]
) -> None:
    first, second, third = (" ".join(word for word in line if word not in "\\#") for line in lines)
    source = (
        f"{MAPPED}#pragma xmp {first}\nint main(void) {{\n#pragma xmp {second}\n"
        f"#pragma acc {third}\n  for (int i = 0; i < N; i++) a[i][0] = 1;\n  return 0;\n}}\n"
    )
    result = compiled(tmp_path, source)
    assert (result.status == 0) == bool(result.text)
    assert (result.status != 0) == bool(result.errors)
