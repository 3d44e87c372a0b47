"""Programs of several files: offsets in one file say nothing about the same offsets in another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cc_programs import MAPPED, compiled

CUBE = """\
static inline double cube(double x) { double y = x;
  y *= x; y *= x;
  y += 0;
  y += 0;
  return y; }
"""
DIRECTIVES = {
    "mapping": "#pragma xmp nodes p[*]\n#pragma xmp template t[40]\n#pragma xmp distribute t[block] onto p\n",
    "acc routine": "#pragma acc routine(cube) seq\n",
    "omp": "void omp(void) {\n#pragma omp parallel for\n  for (int i = 0; i < 4; i++) ;\n}\n",
}
LOOP = """\
int main(void) {
  double q = 0;
#pragma acc parallel loop reduction(+ : q)
  for (int i = 0; i < 40; i++) q += cube(i);
  return (int)q;
}
"""


def _device_copy(text: str) -> str:
    """The text of the function cube in a kernel."""
    lines = [line.strip()[1:-3] for line in text.split("\n") if line.startswith('  "')]
    whole = "\n".join(lines)
    return whole[whole.index("double cube(double x) {") : whole.index("return y; }") + len("return y; }")]


# Each directive once in short runs, in one of the two files.
@pytest.mark.parametrize(
    ("in_header", "directives"),
    [
        pytest.param(
            in_header, directives, id=f"{in_header}-{name}",
            marks=[] if in_header == (at % 2 == 0) else [pytest.mark.long],
        )
        for in_header in (False, True)
        for at, (name, directives) in enumerate(DIRECTIVES.items())
    ],
)  # fmt: skip
def test_the_device_copy_of_a_function_has_its_text(tmp_path: Path, directives: str, in_header: bool) -> None:
    """The position of a directive in the other file does not matter."""
    for offset in range(0, len(CUBE), 7):
        other = "/*" + "x" * offset + "*/\n" + directives
        here, there = (CUBE, other) if in_header else (other, CUBE)
        (tmp_path / "h.h").write_text(there)
        include = '#include "h.h"\n'
        source = here + include if in_header else include + here
        result = compiled(tmp_path, source + LOOP)
        assert (result.status, result.errors) == (0, "")
        assert _device_copy(result.text) == CUBE[len("static inline ") :].strip()


def test_directives_of_headers_mark_no_statement_of_the_file(tmp_path: Path) -> None:
    main = 'int main(void) {\n  a[0][0] = 1;\n#pragma xmp reflect (a)\n  return 0;\n}\n#include "h.h"\n'
    expected = compiled(tmp_path, MAPPED + main.replace('#include "h.h"', "")).text
    start = len(MAPPED) + main.index("a[0]")
    before = len("/**/\n") + DIRECTIVES["omp"].index("#")
    (tmp_path / "h.h").write_text("/*" + "x" * (start - before) + "*/\n" + DIRECTIVES["omp"])
    assert compiled(tmp_path, MAPPED + main).text.replace('#include "h.h"', "") == expected


def test_a_header_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text(MAPPED + "static void f(void) {\n#pragma xmp barrier\n}\n")
    for include in ("h.h", "./h.h", "../" + tmp_path.name + "/h.h"):
        result = compiled(tmp_path, f'#include "{include}"\nint main(void) {{ return 0; }}\n')
        assert "h.h:10:13: error: this directive in a header is not supported yet" in result.errors
        assert "must be in a function" not in result.errors


def test_a_function_of_a_header_that_uses_an_array_is_refused(tmp_path: Path) -> None:
    """Also where the header is longer than the file: what it uses is no place in the file."""
    (tmp_path / "h.h").write_text(MAPPED + "static void f(void) {\n  a[0][0] = 1;\n}\n")
    result = compiled(tmp_path, '#include "h.h"\nint main(void) { return 0; }\n')
    assert "'f' in a header uses a distributed array; that is not supported yet" in result.errors


def test_a_body_may_include_its_statements(tmp_path: Path) -> None:
    """The text of a macro and of an included file are treated alike: they count where they are used."""
    lines = ["double s = 0, c[N];", "  for (int k = 0; k < N; k++) { c[k] = k; }", "s += c[1];"]
    (tmp_path / "b.inc").write_text("\n" * 400 + "\n".join(lines) + "\n")
    main = (
        'int main(void) {\n  int n = 0;\n#include "b.inc"\n#pragma acc parallel loop reduction(+ : s)\n'
        "  for (int i = 0; i < N; i++) s += c[i] + n;\n#pragma xmp barrier\n  return (int)s;\n}\n"
    )
    included = compiled(tmp_path, MAPPED + main)
    assert (included.status, included.errors) == (0, "")
    written = compiled(tmp_path, MAPPED + main.replace('#include "b.inc"', " ".join(lines)))
    assert _kernel(included.text) == _kernel(written.text)


def _kernel(text: str) -> list[str]:
    """The lines of a program's kernel."""
    kernel = text[text.index("static pwx_kernel") :]
    return re.findall(r'^  "(?!#line)(.*)\\n"', kernel[: kernel.index(";\n")], re.MULTILINE)
