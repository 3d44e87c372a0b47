"""Every error of `peerway cc` names the file, line and column, shows the line, and says what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import MAPPED, compiled, in_main

ERRORS = {
    "an unknown directive": (
        in_main("#pragma xmp reflekt (a)"),
        """\
prog.c:10:13: error: unknown directive 'reflekt'; did you mean 'reflect'?
   10 | #pragma xmp reflekt (a)
      |             ^~~~~~~
""",
    ),
    "a directive that is not built yet": (
        in_main("#pragma xmp lock (a)"),
        """\
prog.c:10:13: error: locks not supported yet
   10 | #pragma xmp lock (a)
      |             ^~~~
""",
    ),
    "a coarray of the GPU's memory": (
        "int x[4]:[*], s[4];\nint main(void) {\n#pragma acc host_data use_device(x, s)\n"
        "  { s[:] = x[0:4]:[1]; }\n}\n",
        """\
prog.c:4:12: error: a transfer of coarray 'x' between memories of GPUs is not supported; update 'x' on the \
host before or behind it, and transfer that
    4 |   { s[:] = x[0:4]:[1]; }
      |            ^~~~~~~~~~
prog.c:3:34: note: 'x' is the GPU's here
    3 | #pragma acc host_data use_device(x, s)
      |                                  ^
""",
    ),
    "another number of widths than of dimensions": (
        in_main("#pragma xmp loop (i) on t[i][*] expand(1)", "  for (int i = 0; i < N; i++) a[i][0] = 0;"),
        """\
prog.c:10:33: error: 1 width of expand for 2 dimensions
   10 | #pragma xmp loop (i) on t[i][*] expand(1)
      |                                 ^~~~~~
""",
    ),
    "an unknown clause": (
        in_main("#pragma xmp reflect (a) widht(1, 0)"),
        """\
prog.c:10:25: error: expected a clause (on, async, acc, width, orthogonal, nowait) or the end of the \
directive, found 'widht'
   10 | #pragma xmp reflect (a) widht(1, 0)
      |                         ^~~~~
""",
    ),
    "an unknown clause of acc": (
        in_main("#pragma acc parallel loop num_gang(3)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:27: error: 'num_gang' is no clause of acc parallel loop; did you mean 'num_gangs'?
   10 | #pragma acc parallel loop num_gang(3)
      |                           ^~~~~~~~
""",
    ),
    "the end where something must come": (
        in_main("#pragma xmp loop (i) on"),
        """\
prog.c:10:24: error: expected a reference to a template or to nodes, the directive ends here
   10 | #pragma xmp loop (i) on
      |                        ^
""",
    ),
    "a bracket that is not closed": (
        in_main("#pragma xmp reflect (a) width((1, 0)"),
        """\
prog.c:10:37: error: expected ')' behind the widths, the directive ends here
   10 | #pragma xmp reflect (a) width((1, 0)
      |                                     ^
""",
    ),
    "an alignment with an undeclared template": (
        MAPPED + "#pragma xmp align c[i] with s[i]\n",
        """\
prog.c:9:29: error: there is no template 's'; declare it with '#pragma xmp template'
    9 | #pragma xmp align c[i] with s[i]
      |                             ^
""",
    ),
    "nodes in the place of a template": (
        MAPPED + "#pragma xmp align c[i] with p[i]\n",
        """\
prog.c:9:29: error: 'p' is a node array, not a template
    9 | #pragma xmp align c[i] with p[i]
      |                             ^
prog.c:2:19: note: 'p' is declared here
    2 | #pragma xmp nodes p[*]
      |                   ^
""",
    ),
    "ranks that do not match in align": (
        MAPPED + "#pragma xmp align c[i][j] with t[i][j]\n",
        """\
prog.c:9:19: error: 2 indices for 'c', which has 1 dimension
    9 | #pragma xmp align c[i][j] with t[i][j]
      |                   ^
""",
    ),
    "an initialiser of an aligned array": (
        MAPPED + "double d[N] = {1};\n#pragma xmp align d[i] with t[i][*]\n",
        """\
prog.c:10:19: error: 'd' is aligned, so it cannot have an initialiser
   10 | #pragma xmp align d[i] with t[i][*]
      |                   ^
prog.c:9:8: note: 'd' is declared here
    9 | double d[N] = {1};
      |        ^~~~~~~~~~
""",
    ),
    "a reflect of an array without a shadow": (
        in_main("#pragma xmp reflect (b)"),
        """\
prog.c:10:22: error: 'b' has no shadow; declare one with '#pragma xmp shadow'
   10 | #pragma xmp reflect (b)
      |                      ^
prog.c:7:19: note: 'b' is aligned here
    7 | #pragma xmp align b[i][j] with t[i][j]
      |                   ^
""",
    ),
    "a width over the shadow": (
        in_main("#pragma xmp reflect (a) width(1:2, 0)"),
        """\
prog.c:10:33: error: width 2 is larger than the shadow of 'a' in dimension 0 (1:1)
   10 | #pragma xmp reflect (a) width(1:2, 0)
      |                                 ^
prog.c:8:20: note: the shadow is declared here
    8 | #pragma xmp shadow a[1][0]
      |                    ^
""",
    ),
    "an index that is not in the on clause": (
        in_main(
            "#pragma xmp loop (i, j) on t[i][*]",
            "  for (int i = 0; i < N; i++)",
            "    for (int j = 0; j < N; j++) a[i][j] = 0;",
        ),
        """\
prog.c:10:22: error: index 'j' of the loop is not in the on clause
   10 | #pragma xmp loop (i, j) on t[i][*]
      |                      ^
""",
    ),
    "no loop behind the directive": (
        in_main("#pragma xmp loop (i) on t[i][*]", "  c[0] = 1;"),
        """\
prog.c:10:13: error: expected a 'for' loop behind this directive
   10 | #pragma xmp loop (i) on t[i][*]
      |             ^~~~
prog.c:11:3: note: this follows
   11 |   c[0] = 1;
      |   ^
""",
    ),
    "a header that is no count": (
        in_main("#pragma xmp loop (i) on t[i][*]", "  for (int i = 1; i < N; i *= 2) a[i][0] = 0;"),
        """\
prog.c:11:26: error: expected 'i++' or 'i += step', found 'i *= 2'
   11 |   for (int i = 1; i < N; i *= 2) a[i][0] = 0;
      |                          ^~~~~~
""",
    ),
    "too few loops for collapse": (
        in_main("#pragma acc parallel loop collapse(2)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:27: error: collapse(2) needs 2 loops nested directly, found 1
   10 | #pragma acc parallel loop collapse(2)
      |                           ^~~~~~~~
""",
    ),
    "an array through an unrelated pointer": (
        in_main("  double(*q)[N] = a;", "  q[0][0] = 1;"),
        """\
prog.c:10:19: error: distributed array 'a' is used here without subscripts; only a function whose parameter \
is aligned can take it so
   10 |   double(*q)[N] = a;
      |                   ^
""",
    ),
    "an argument for a parameter that is not aligned": (
        MAPPED + "static double f(double v[N][N]) { return v[0][0]; }\nint main(void) { return f(a) > 0; }\n",
        """\
prog.c:10:27: error: distributed array 'a' is passed to 'v', which is not aligned
   10 | int main(void) { return f(a) > 0; }
      |                           ^
prog.c:9:24: note: 'v' is declared here
    9 | static double f(double v[N][N]) { return v[0][0]; }
      |                        ^~~~~~~
""",
    ),
    "a function of the system": (
        "#include <string.h>\n" + in_main("  memset(a, 0, 8);"),
        """\
prog.c:11:10: error: 'memset' cannot take distributed array 'a': it knows nothing of its mapping
   11 |   memset(a, 0, 8);
      |          ^
""",
    ),
    "a template that is not fixed": (
        "#pragma xmp nodes p[*]\n#pragma xmp template t[:]\n#pragma xmp distribute t[block] onto p\n"
        "static double a[8];\n#pragma xmp align a[i] with t[i]\nint main(void) {\n  a[0] = 1;\n"
        "#pragma xmp template_fix t[8]\n  return 0;\n}\n",
        """\
prog.c:7:3: error: 'a' is used before its template is fixed
    7 |   a[0] = 1;
      |   ^
prog.c:8:1: note: its template is fixed here
    8 | #pragma xmp template_fix t[8]
      | ^
""",
    ),
    "an operator that the type has not": (
        in_main("  double s = 0;", "#pragma xmp reduction (^ : s)"),
        """\
prog.c:11:28: error: '^' is not defined for the floating-point 's'
   11 | #pragma xmp reduction (^ : s)
      |                            ^
""",
    ),
    "a place inside a macro's expansion": (
        "#define ON onn t[i][*]\n"
        + in_main("#pragma xmp loop (i) ON", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:11:22: error: expected 'on' behind the indices of the loop, found 'onn'
   11 | #pragma xmp loop (i) ON
      |                      ^~
""",
    ),
    "a place behind a continued line and tabs": (
        in_main("#pragma xmp \\", "\treflect \\", "\t\t(b)"),
        """\
prog.c:12:4: error: 'b' has no shadow; declare one with '#pragma xmp shadow'
   12 | \t\t(b)
      | \t\t ^
prog.c:7:19: note: 'b' is aligned here
    7 | #pragma xmp align b[i][j] with t[i][j]
      |                   ^
""",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_an_error_says_where_it_is_and_what_was_expected(tmp_path: Path, what: str) -> None:
    source, errors = ERRORS[what]
    result = compiled(tmp_path, source)
    assert (result.status, result.errors, result.text) == (1, errors, "")


def test_several_errors_come_in_the_order_of_the_text(tmp_path: Path) -> None:
    source = in_main(
        "#pragma xmp reflect (b)",
        "  c[0] = 1;",
        "#pragma xmp barrier on q",
        "#pragma xmp reduction (+ : nothing)",
    )
    errors = compiled(tmp_path, source).errors
    assert [line.split(": ")[0] for line in errors.splitlines() if ": error: " in line] == [
        "prog.c:10:22", "prog.c:12:24", "prog.c:13:28",
    ]  # fmt: skip


def test_an_error_of_c_is_shown_as_one(tmp_path: Path) -> None:
    result = compiled(tmp_path, "int main(void) {\n  return nothing;\n}\n")
    assert result.status == 1
    assert result.errors == (
        "prog.c:2:10: error: use of undeclared identifier 'nothing'\n"
        "    2 |   return nothing;\n      |          ^\n"
    )


@pytest.mark.parametrize("stage", [["-o", "out"], ["-c", "-o", "out"], ["-S", "-o", "out"], ["--emit=out"]])
def test_an_error_leaves_what_was_there(tmp_path: Path, stage: list[str]) -> None:
    (tmp_path / "out").write_text("kept")
    assert compiled(tmp_path, in_main("#pragma xmp reflect (b)"), *stage).status == 1
    assert (tmp_path / "out").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "prog.c"]
