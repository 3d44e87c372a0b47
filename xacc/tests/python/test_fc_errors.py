"""Every error of `peerway fc` names the file, line and column, shows the line, and says what was expected."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from fc_programs import compiled, in_program

ERRORS = {
    "unknown directive": (
        in_program("!$xmp reflekt (a)"),
        """\
prog.f90:9:7: error: unknown directive 'reflekt'; did you mean reflect?
    9 | !$xmp reflekt (a)
      |       ^~~~~~~
""",
    ),
    "no loop": (
        in_program("!$xmp loop (i) on t(i)", "a = 0"),
        """\
prog.f90:9:7: error: expected a DO with an index behind this directive
    9 | !$xmp loop (i) on t(i)
      |       ^~~~
prog.f90:10:1: note: this follows
   10 | a = 0
      | ^
""",
    ),
    "another loop": (
        in_program("!$xmp loop (k) on t(k)", "do i = 1, n", "end do"),
        """\
prog.f90:9:7: error: there is no loop over 'k' behind this directive
    9 | !$xmp loop (k) on t(k)
      |       ^~~~
prog.f90:10:1: note: this follows
   10 | do i = 1, n
      | ^~~~~~~~~~~
""",
    ),
    "width": (
        in_program("!$xmp reflect (a) width(0, 2)"),
        """\
prog.f90:9:28: error: width 2 is larger than the shadow of 'a' in dimension 2 (1:1)
    9 | !$xmp reflect (a) width(0, 2)
      |                            ^
prog.f90:8:14: note: the shadow is declared here
    8 | !$xmp shadow a(0, 1)
      |              ^
""",
    ),
    "number of widths": (
        in_program("!$xmp reflect (a) width(1)"),
        """\
prog.f90:9:25: error: 1 width for 'a', which has 2 dimensions
    9 | !$xmp reflect (a) width(1)
      |                         ^
""",
    ),
    "no shadow": (
        in_program("!$xmp align c(i) with t(i)", "!$xmp reflect (c)"),
        """\
prog.f90:10:16: error: 'c' has no shadow; declare one with '!$xmp shadow'
   10 | !$xmp reflect (c)
      |                ^
prog.f90:9:13: note: 'c' is aligned here
    9 | !$xmp align c(i) with t(i)
      |             ^
""",
    ),
    "unaligned": (
        in_program("!$xmp reflect (b)"),
        """\
prog.f90:9:16: error: 'b' is not aligned with a template
    9 | !$xmp reflect (b)
      |                ^
""",
    ),
    "undeclared": (
        in_program("!$xmp align z(i) with t(i)"),
        """\
prog.f90:9:13: error: 'z' is not declared
    9 | !$xmp align z(i) with t(i)
      |             ^
""",
    ),
    "wrong rank": (
        in_program("!$xmp align c(i, j) with t(j)"),
        """\
prog.f90:9:13: error: 2 indices for 'c', which has 1 dimension
    9 | !$xmp align c(i, j) with t(j)
      |             ^
""",
    ),
    "brackets of C": (
        in_program("!$xmp align c[i] with t[i]"),
        """\
prog.f90:9:14: error: expected '(' and an index for each dimension of the array, found '['
    9 | !$xmp align c[i] with t[i]
      |              ^
""",
    ),
    "exit": (
        in_program("!$xmp loop on t(i)", "do i = 1, n", "  if (i == 3) exit", "end do"),
        """\
prog.f90:11:15: error: EXIT leaves a distributed loop before its end; all its iterations must run
   11 |   if (i == 3) exit
      |               ^~~~
prog.f90:10:1: note: the loop begins here
   10 | do i = 1, n
      | ^~
""",
    ),
    "return": (
        in_program("!$xmp loop on t(i)", "do i = 1, n", "  return", "end do"),
        """\
prog.f90:11:3: error: RETURN leaves a distributed loop before its end; all its iterations must run
   11 |   return
      |   ^~~~~~
prog.f90:10:1: note: the loop begins here
   10 | do i = 1, n
      | ^~
""",
    ),
    "task": (
        in_program("!$xmp task on p(1)", "c = 0"),
        """\
prog.f90:9:7: error: this task has no end; write '!$xmp end task' behind its statements
    9 | !$xmp task on p(1)
      |       ^~~~
""",
    ),
    "end task": (
        in_program("c = 0", "!$xmp end task"),
        """\
prog.f90:10:7: error: there is no task that this could end
   10 | !$xmp end task
      |       ^~~
""",
    ),
    "end": (
        in_program("c = 0", "!$xmp end taks"),
        """\
prog.f90:10:11: error: unknown directive 'end taks'; did you mean tasks?
   10 | !$xmp end taks
      |           ^~~~
""",
    ),
    "gmove": (
        in_program("!$xmp gmove", "c = a(1, :) + 1"),
        """\
prog.f90:10:5: error: expected an array or a section of one, without arithmetic and without components
   10 | c = a(1, :) + 1
      |     ^~~~~~~~~~~
""",
    ),
    "gmove of nothing": (
        in_program("!$xmp gmove", "c = b(1:n)"),
        """\
prog.f90:10:1: error: neither side of this gmove is a distributed array
   10 | c = b(1:n)
      | ^~~~~~~~~~
""",
    ),
    "gmove subscripts": (
        in_program("!$xmp gmove", "c = a(1, :, 2)"),
        """\
prog.f90:10:5: error: 'a' has 2 dimensions, and 3 subscripts here
   10 | c = a(1, :, 2)
      |     ^~~~~~~~~~
""",
    ),
    "common": (
        "program prog\nreal x(8)\ncommon /c/ x\n!$xmp nodes p(*)\n!$xmp template t(8)\n!$xmp distribute t(block) onto p\n!$xmp align x(i) with t(i)\nend\n",
        """\
prog.f90:7:13: error: 'x' is in a COMMON block, so it cannot be distributed; move it to a module
    7 | !$xmp align x(i) with t(i)
      |             ^
prog.f90:2:6: note: 'x' is declared here
    2 | real x(8)
      |      ^
""",
    ),
    "acc": (
        in_program("!$acc parallel loop", "do i = 1, n", "end do"),
        """\
prog.f90:9:7: error: directives of OpenACC in Fortran are left to another compiler; name it, as in --openacc-backend=gfortran
    9 | !$acc parallel loop
      |       ^~~~~~~~
""",
    ),
    "acc unknown": (
        in_program("!$acc paralel loop", "do i = 1, n", "end do"),
        """\
prog.f90:9:7: error: unknown directive 'paralel' of acc; did you mean parallel?
    9 | !$acc paralel loop
      |       ^~~~~~~
""",
    ),
    "component": (
        in_program("!$xmp align s%a(i) with t(i)"),
        """\
prog.f90:9:14: error: a component of a derived type has no mapping yet; align a variable
    9 | !$xmp align s%a(i) with t(i)
      |              ^
""",
    ),
    "not yet": (
        in_program("!$xmp loop on t(i) margin(1)", "do i = 1, n", "end do"),
        """\
prog.f90:9:20: error: the clause margin is not supported in Fortran yet
    9 | !$xmp loop on t(i) margin(1)
      |                    ^~~~~~
""",
    ),
    "two errors": (
        in_program("!$xmp reflect (q)", "!$xmp bcast (a)"),
        """\
prog.f90:9:16: error: 'q' is not declared
    9 | !$xmp reflect (q)
      |                ^
prog.f90:10:14: error: 'a' is a distributed array; bcast of it is not supported yet
   10 | !$xmp bcast (a)
      |              ^
""",
    ),
    "function": (
        in_program("i = xmp_desc_of(a)"),
        """\
prog.f90:9:5: error: xmp_desc_of is not supported in Fortran yet; there are xmp_node_num, xmp_num_nodes, xmp_all_node_num, xmp_all_num_nodes, xmp_wtime, xmp_wtick, xmp_barrier, xmp_exit
    9 | i = xmp_desc_of(a)
      |     ^~~~~~~~~~~
""",
    ),
    "eqv": (
        in_program("!$xmp reduction(.eqv.: l)"),
        """\
prog.f90:9:17: error: a reduction with .eqv. is not supported yet
    9 | !$xmp reduction(.eqv.: l)
      |                 ^~~~~
""",
    ),
    "no unit": (
        "!$xmp nodes p(*)\nsubroutine s\nend\n",
        """\
prog.f90:1:7: error: this directive is in no program unit
    1 | !$xmp nodes p(*)
      |       ^
""",
    ),
    "pointer assignment": (
        in_program("!$xmp align c(i) with t(i)", "c(1) = 0", "c => d"),
        """\
prog.f90:11:1: error: 'c' is a distributed array; a pointer assignment would leave its mapping behind
   11 | c => d
      | ^
""",
    ),
    "continuation": (
        in_program("!$xmp loop (i) &", "!$xmp   on u(i)", "do i = 1, n", "end do"),
        """\
prog.f90:10:12: error: there are no nodes and no template 'u'
   10 | !$xmp   on u(i)
      |            ^
""",
    ),
}


@pytest.mark.parametrize(("source", "errors"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_shows_the_line_and_what_is_wrong(tmp_path: Path, source: str, errors: str) -> None:
    compilation = compiled(tmp_path, source)
    assert (compilation.status, compilation.text, compilation.errors) == (1, "", errors)


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "maps.inc").write_text("!$xmp nodes p(*)\n!$xmp templat t(8)\n")
    errors = compiled(tmp_path, "program prog\ninclude 'maps.inc'\nend\n").errors
    assert (
        errors.splitlines()[0] == "maps.inc:2:7: error: unknown directive 'templat'; did you mean template?"
    )
