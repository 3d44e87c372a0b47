"""Sources with any bytes: other alphabets, Latin-1, byte order marks, line ends, and names of files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cc_programs import MAPPED, Compiled, compiled

# WORD is in a comment before everything else, in a string, in names of all kinds, and in a directive.
PROGRAM = (
    "/* WORD */\n"
    + MAPPED
    + """\
#define times_WORD(x) ((x) * 2)
struct s_WORD { int n_WORD; };
static double a_WORD[N][N]; /* WORD */
#pragma xmp align a_WORD[i][j] with t[i][j]
static double f_WORD(double x_WORD) { struct s_WORD s_WORD = {1}; return x_WORD * s_WORD.n_WORD; }
int main(void) {
  const char *text = "WORD"; int k_WORD = times_WORD(1); // WORD
#pragma xmp loop (i) on t[i][*] /* WORD */
  for (int i = 0; i < N; i++) /* WORD */ a_WORD[i][times_WORD(0)] = f_WORD(k_WORD);
#pragma acc parallel loop firstprivate(k_WORD)
  for (int i_WORD = 0; i_WORD < N; i_WORD++) c[i_WORD] = f_WORD(k_WORD); /* WORD */
#pragma xmp gmove
  a_WORD[0][0:N] = a_WORD[1][0:N];
#pragma xmp reflect (a) /* WORD */
  return text[0] != 0;
}
"""
)
IN_NAMES = "abcdef"


def _program(in_names: str, elsewhere: str) -> str:
    """The program, with WORD as a letter of identifiers and, elsewhere, as any text."""
    out = PROGRAM.replace("_WORD", f"_{in_names}")
    return out.replace("WORD", elsewhere)


def _is_right(folder: Path, result: Compiled) -> None:
    """Check that there are no errors, and that the C compiler accepts the generated text."""
    assert (result.status, result.errors) == (0, "")
    (folder / "out.c").write_bytes(result.data)
    core = Path(compiled.__globals__["driver"].prefix()) / "include"
    check = ["gcc", "-fopenmp", "-fsyntax-only", f"-I{core}", f"-I{core / 'peerway' / 'xacc'}", "out.c"]
    assert subprocess.run(check, cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize(
    ("in_names", "elsewhere"),
    [
        ("ü".encode(), "größer".encode()),
        ("日本".encode(), "日本語 – 漢字".encode()),
        ("à".encode(), "à\u00a0\u0085 é".encode()),  # with bytes that Python takes for blanks
        (b"x", b"gr\xf6\xdfer \x85\xa0"),  # Latin-1, which is not UTF-8
        (b"x", b"a\\\\b \xff\xfe"),
    ],
)
def test_letters_of_any_alphabet_change_nothing_else(
    tmp_path: Path, in_names: bytes, elsewhere: bytes
) -> None:
    plain = compiled(tmp_path, _program(IN_NAMES, "uvwxyz"))
    source = _program(IN_NAMES, "uvwxyz").encode()
    other = compiled(tmp_path, source.replace(b"uvwxyz", elsewhere).replace(IN_NAMES.encode(), in_names))
    _is_right(tmp_path, other)
    assert other.data == plain.data.replace(b"uvwxyz", elsewhere).replace(IN_NAMES.encode(), in_names)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    source = "#pragma xmp nodes q[*]\n" + _program("x", "y")
    marked = compiled(tmp_path, b"\xef\xbb\xbf" + source.encode())
    _is_right(tmp_path, marked)
    assert marked.data.replace(b"   #pragma", b"#pragma") == compiled(tmp_path, source).data


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    source = _program("ü", "größer").replace("loop (i) on", "loop \\\n (i) on")
    dos = compiled(tmp_path, source.replace("\n", "\r\n").encode())
    _is_right(tmp_path, dos)
    assert dos.data.replace(b"\r\n", b"\n") == compiled(tmp_path, source).data


def test_blanks_may_follow_a_backslash_at_the_end_of_a_line(tmp_path: Path) -> None:
    source = _program("x", "y").replace("loop (i) on", "loop \\\n (i) on")
    assert compiled(tmp_path, source.replace("\\\n", "\\ \n")).data == compiled(tmp_path, source).data


def test_names_may_have_universal_character_names(tmp_path: Path) -> None:
    text = compiled(tmp_path, PROGRAM.replace("_WORD", "_\\u00fc").replace("firstprivate(k_\\u00fc)", ""))
    assert (text.status, text.errors) == (0, "")
    source = _program("ü", "x").replace("firstprivate(k_ü)", "firstprivate(k_\\u00fc)")
    _is_right(tmp_path, compiled(tmp_path, source))


@pytest.mark.parametrize("name", ["größe.c", "日本語.c", 'a "b" \\ c.c', "a b.c"])
def test_files_and_headers_have_any_names(tmp_path: Path, name: str) -> None:
    head = f"h {name}".replace('"', "'").replace("\\", "/")
    (tmp_path / head).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / head).write_text("#pragma xmp nodes q[*]\nstatic int of_header(int x) { return x; }\n")
    result = compiled(tmp_path, f'#include "{head}"\n{_program("x", "y")}', name=name)
    _is_right(tmp_path, result)
    wrong = compiled(tmp_path, "#pragma xmp nodes p[*]\n#pragma xmp oops\n", name=name)
    assert wrong.errors.startswith(f"{name}:2:13: error: unknown directive 'oops'")


def test_carets_stand_below_what_an_error_is_about(tmp_path: Path) -> None:
    source = (
        MAPPED
        + "int main(void) {\n\t/* 日本 é */\n/*\té日 */ #pragma xmp reflect (größe, b, a)\n  return 0;\n}\n"
    )
    assert compiled(tmp_path, source).errors == (
        "prog.c:11:34: error: 'größe' is not declared\n"
        "   11 | /*\té日 */ #pragma xmp reflect (größe, b, a)\n"
        "      |   \t                            ^~~~~\n"
    )


@pytest.mark.parametrize("written", ["%:pragma", "# pragma", "#\tpragma"])
def test_a_directive_may_begin_as_c_allows(tmp_path: Path, written: str) -> None:
    source = _program("x", "y")
    plain = compiled(tmp_path, source)
    other = compiled(tmp_path, source.replace("#pragma xmp reflect", f"{written} xmp reflect"))
    assert (other.status, other.errors) == (0, "")
    assert _without_lines(other.text) == _without_lines(plain.text)


def _without_lines(text: str) -> list[str]:
    """The lines of a generated text, without those that say where in the source it is from."""
    return [
        line for line in text.split("\n") if line.strip() and "PWX_HERE" not in line and "#line" not in line
    ]


def test_a_directive_with_trigraphs_is_refused(tmp_path: Path) -> None:
    for written, column in (("#pragma xmp barrier ??/\n on p", 21), ("??=pragma xmp barrier", 1)):
        source = MAPPED + f"int main(void) {{\n{written}\n  return 0;\n}}\n"
        result = compiled(tmp_path, source, "--emit", "-std=c11")
        assert result.errors.startswith(f"prog.c:10:{column}: error: ")


def test_a_variable_may_have_the_name_of_a_function_of_c(tmp_path: Path) -> None:
    source = "#include <xmp.h>\nint index = 3, link = 4, read, y0;\n" + _program("x", "y")
    _is_right(tmp_path, compiled(tmp_path, source))
