"""How `peerway fc` reads lines in both forms; and that any text gives a text or errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from fc_programs import compiled, in_program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peerway_xacc.fortran.source import Form, FortranText, logical_lines
from peerway_xacc.fortran.translate import translate
from peerway_xacc.fortran.words import words_of
from peerway_xacc.frontend.diagnostics import Diagnostics, HasErrors

FREE, FIXED = Form(fixed=False), Form(fixed=True)
WHOLE = Path(__file__).parents[1] / "system" / "programs" / "xacc_fc" / "directives.f90"


def text_of(source: str) -> FortranText:
    return FortranText("prog.f90", [(line, "prog.f90", n) for n, line in enumerate(source.split("\n"), 1)])


@pytest.mark.parametrize(
    ("form", "source", "texts"),
    [
        (FREE, "a = 1 ! more\nb = '!'; c = 2", ["a = 1", "b = '!'", "c = 2"]),
        (FREE, "a = 1 + &  ! first\n\n  ! between\n  & 2", ["a = 1 +  2"]),
        (FREE, "c = 'it''s &\n  &here'", ["c = 'it''s here'"]),
        (FREE, "10 continue\n 20 x = 3", ["continue", "x = 3"]),
        (FREE, "!$xmp reflect (a) &\n!$xmp & width(1)\n! none\n!$ompx", ["reflect (a)  width(1)"]),
        (FIXED, "C comment\n      A = 1\n     &  + 2\n* another\n", ["A = 1  + 2"]),
        (FIXED, "   10 CONTINUE\n\tB = 2\n\t1 + 3", ["CONTINUE", "B = 2 + 3"]),
        (FIXED, "!$XMP REFLECT (A)\nC$xmp& WIDTH(1)\n      X = 1", ["REFLECT (A) WIDTH(1)", "X = 1"]),
        (FIXED, "      A = 1" + " " * 61 + "IGNORED", ["A = 1"]),
    ],
)
def test_lines_are_joined_to_statements(form: Form, source: str, texts: list[str]) -> None:
    logicals = logical_lines(text_of(source), form)
    assert [logical.text for logical in logicals] == texts


@pytest.mark.parametrize(
    ("source", "tokens"),
    [
        ("x=1.eq.2.or.y", ["x", "=", "1", ".eq.", "2", ".or.", "y"]),
        ("a(1:N)%B = 1.5e-3_dp**2", ["a", "(", "1", ":", "n", ")", "%", "b", "=", "1.5e-3_dp", "**", "2"]),
        ("c = 'It''s' // \"A\"", ["c", "=", "'It''s'", "/", "/", '"A"']),
    ],
)
def test_tokens_are_those_of_fortran(source: str, tokens: list[str]) -> None:
    text = text_of(source)
    assert [word.text for word in words_of(text, logical_lines(text, FREE)[0])] == tokens


def test_text_without_directives_stays_as_it_is(tmp_path: Path) -> None:
    source = "subroutine s(x)\n  real :: x   ! odd   blanks\n\tx = 1 ; x = &\n   & 2\nend\n"
    fortran = compiled(tmp_path, source).text.partition("\n! C beside it:")[0]
    assert fortran.rstrip("\n") == f'# 1 "prog.f90"\n{source}'.rstrip("\n")


def test_a_statement_keeps_its_line(tmp_path: Path) -> None:
    """A marker before what follows a generated line says which line of the program it is."""
    text = compiled(tmp_path, in_program("!$xmp loop on t(j)", "do j = 1, n", "  a(:, j) = 0", "end do")).text
    lines = text.splitlines()
    assert lines[lines.index("  a(:, j) = 0") - 1] == '# 11 "prog.f90"'


def test_a_long_statement_is_continued(tmp_path: Path) -> None:
    bound = "+".join(["n"] * 60)
    for name, source in (
        ("prog.f90", in_program("!$xmp loop on t(j)", f"do j = 1, {bound}", "end do")),
        ("prog.f", "".join(f"      {line}\n" if line[:1] != "!" else f"{line}\n" for line in (
            "program prog", "integer n, j", "!$xmp nodes p(*)", "!$xmp template t(9)",
            "!$xmp distribute t(block) onto p", "!$xmp loop on t(j)", "do j = 1, n+n+n+n+n+n+n+n+n+n+n+n+n+n",
            "end do", "end"))),
    ):  # fmt: skip
        text = compiled(tmp_path, source, name=name).text.partition("\n! C beside it:")[0]
        widest = max(len(line) for line in text.splitlines() if not line.startswith(("#", "!")))
        assert widest <= (72 if name == "prog.f" else 132)


LINES = WHOLE.read_text().split("\n")
PIECES = st.sampled_from([
    "(", ")", "!$xmp", "!$xmp end task", "'", '"', "&", ";", "end", "do", "do 10", "10 continue", "contains",
    "module m", "use m", ":", "::", "%", "*", "a", "\x00", "\xff", "interface", "type t", "if (", "allocate(",
])  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(LINES) - 1), st.integers(0, 60), PIECES), max_size=6),
    drops=st.sets(st.integers(0, len(LINES) - 1), max_size=5),
    fixed=st.booleans(),
)
def test_any_text_is_translated_or_refused(
    changes: list[tuple[int, int, str]], drops: set[int], fixed: bool
) -> None:
    """The whole test program with lines taken out and pieces put in: nothing but errors comes of it."""
    lines = list(LINES)
    for number, column, piece in changes:
        lines[number] = lines[number][:column] + piece + lines[number][column:]
    text = text_of("\n".join(line for number, line in enumerate(lines) if number not in drops))
    diagnostics = Diagnostics()
    try:
        translated = translate("prog.f90", text, FIXED if fixed else FREE, diagnostics, foreign_acc=True)
    except HasErrors:
        assert diagnostics
    else:
        assert translated.fortran


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=20), st.booleans())
def test_any_directive_is_read_or_refused(pieces: list[str], fixed: bool) -> None:
    directive = "!$xmp " + " ".join(pieces).replace("\n", " ")
    source = f"      program p\n      integer a(8)\n{directive}\n      a(1) = 1\n      end\n"
    diagnostics = Diagnostics()
    try:
        translate("prog.f", text_of(source), FIXED if fixed else FREE, diagnostics, foreign_acc=True)
    except HasErrors:
        assert diagnostics
