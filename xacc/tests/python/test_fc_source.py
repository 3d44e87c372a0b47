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
PROGRAMS = Path(__file__).parents[1] / "system" / "programs" / "xacc_fc"


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


SOURCES = {
    name: (PROGRAMS / f"{name}.f90").read_text().split("\n")
    for name in ("directives", "acc", "types", "parts", "coarrays")
}
PIECES = st.sampled_from([
    "(", ")", "!$xmp", "!$xmp end task", "'", '"', "&", ";", "end", "do", "do 10", "10 continue", "contains",
    "module m", "use m", ":", "::", "%", "*", "a", "\x00", "\xff", "interface", "type t", "if (", "allocate(",
    "!$acc parallel loop", "!$acc end", "!$acc kernels", "reduction(+:", "!$acc", "i", ",", "=", "1", "=>",
    "end if", "else", "call ", "!$xmp local_alias", "!$xmp align a(i) with t(i)", "[", "]", "real :: ",
    "%x", "%m(1, 2)", "type(point) :: a", "end type", "type, extends(t) :: u", "point(1, 2)", "type(t) :: t",
    "!$xmp coarray on p :: a", "!$xmp image (p)", "[2, *]", "this_image(", "call co_sum(", "[1]%x",
])  # fmt: skip


def changed(source: list[str], data: st.DataObject) -> str:
    """A program with lines taken out and pieces put in."""
    lines = list(source)
    numbers = st.integers(0, len(lines) - 1)
    drops = data.draw(st.sets(numbers, max_size=5))
    for number, column, piece in data.draw(
        st.lists(st.tuples(numbers, st.integers(0, 60), PIECES), max_size=6)
    ):
        lines[number] = lines[number][:column] + piece + lines[number][column:]
    return "\n".join(line for number, line in enumerate(lines) if number not in drops)


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), fixed=st.booleans(), foreign_acc=st.booleans())
def test_any_text_is_translated_or_refused(
    name: str, data: st.DataObject, fixed: bool, foreign_acc: bool
) -> None:
    """A test program with lines taken out and pieces put in: nothing but errors comes of it."""
    text = text_of(changed(SOURCES[name], data))
    diagnostics = Diagnostics()
    try:
        translated = translate("prog.f90", text, FIXED if fixed else FREE, diagnostics, foreign_acc)
    except HasErrors:
        assert diagnostics
    else:
        assert translated.fortran


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_text_with_kernels_is_compiled_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """The C that loops of acc become goes through the phases of `peerway cc`, which refuse nothing of it."""
    lines = SOURCES[data.draw(st.sampled_from(["acc", "types"]))]
    result = compiled(tmp_path, changed(lines, data).encode(errors="replace"))
    assert result.text if result.status == 0 else result.errors


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("abE1.+-*/=<>()[]:;,%&!$'\"_ \t\n\r#\x00\xffcC"), max_size=120), st.booleans())
def test_the_scanner_keeps_each_character_at_its_place(source: str, fixed: bool) -> None:
    """A token is what stands at its place; only blanks, comments and marks of continuation are in none."""
    text = text_of(source)
    for logical in logical_lines(text, FIXED if fixed else FREE):
        assert len(logical.offsets) == max(1, len(logical.text))
        assert [text.text[offset] for offset in logical.offsets[: len(logical.text)]] == list(logical.text)
        words = words_of(text, logical)
        for before, word in zip([None, *words], words, strict=False):
            assert logical.text[word.start : word.end].lower() == word.text.lower()
            assert (before.end if before else 0) <= word.start < word.end
            assert not logical.text[before.end if before else 0 : word.start].strip()
        assert not logical.text[words[-1].end if words else 0 :].strip()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=20),
    st.booleans(),
    st.sampled_from(["xmp", "acc"]),
)
def test_any_directive_is_read_or_refused(pieces: list[str], fixed: bool, model: str) -> None:
    directive = f"!${model} " + " ".join(pieces).replace("\n", " ")
    source = f"      program p\n      integer a(8)\n{directive}\n      a(1) = 1\n      end\n"
    diagnostics = Diagnostics()
    try:
        translate("prog.f", text_of(source), FIXED if fixed else FREE, diagnostics, model == "xmp")
    except HasErrors:
        assert diagnostics
