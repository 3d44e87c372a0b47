"""Every error of `peerway fc` names the file, line and column, shows the line, and says what was expected."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from fc_programs import compiled, in_program

TYPES = """\
program prog
  type :: cell
    real :: x, v(2, 0:3)
    real, pointer :: far
  end type cell
  type(cell) :: c(8), one, two
  integer :: i
  real :: y(8)
"""  # eight lines, as in_program


def with_types(*lines: str) -> str:
    """Variables of a type and these lines in the main program; the first is line 9."""
    return TYPES + "".join(f"{line}\n" for line in lines) + "end program prog\n"


def in_loop(statement: str) -> str:
    """A statement in a kernel, in line 11."""
    return with_types("!$acc parallel loop", "do i = 1, 8", f"  {statement}", "end do")


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
    "acc call": (
        in_program("!$acc parallel loop", "do i = 1, n", "  call s(i)", "end do"),
        """\
prog.f90:11:8: error: the subroutine 's' is not in this file, so a kernel cannot call it
   11 |   call s(i)
      |        ^
""",
    ),
    "acc print": (
        in_program("!$acc parallel loop", "do i = 1, n", "  print *, i", "end do"),
        """\
prog.f90:11:3: error: a kernel cannot have this statement (PRINT) yet
   11 |   print *, i
      |   ^~~~~
""",
    ),
    "acc function": (
        in_program("!$acc parallel loop", "do i = 1, n", "  b(i) = f(i)", "end do"),
        """\
prog.f90:11:10: error: the function 'f' is not in this file, so a kernel cannot call it
   11 |   b(i) = f(i)
      |          ^
""",
    ),
    "acc whole": (
        in_program("!$acc parallel loop", "do i = 1, n", "  b = c", "end do"),
        """\
prog.f90:11:3: error: the whole array 'b' in an expression: kernels need elements, so write a loop over them
   11 |   b = c
      |   ^
""",
    ),
    "acc section": (
        in_program("!$acc parallel loop", "do i = 1, n", "  c(i) = a(:, i)", "end do"),
        """\
prog.f90:11:10: error: a section of 'a': kernels need elements, so write a loop over them
   11 |   c(i) = a(:, i)
      |          ^
""",
    ),
    "acc dims": (
        in_program("!$acc parallel loop", "do i = 1, n", "  a(i) = 1", "end do"),
        """\
prog.f90:11:3: error: 1 subscript for 'a', which has 2 dimensions
   11 |   a(i) = 1
      |   ^
""",
    ),
    "acc types": (
        in_program("!$acc parallel loop", "do i = 1, n", "  if (i) b(i) = 'x'", "end do"),
        """\
prog.f90:11:7: error: expected a condition, found integer(4)
   11 |   if (i) b(i) = 'x'
      |       ^
""",
    ),
    "acc comp": (
        in_loop("y(i) = z%x"),
        """\
prog.f90:11:12: error: real(4) has no component 'x'
   11 |   y(i) = z%x
      |            ^
""",
    ),
    "acc no such component": (
        in_loop("y(i) = c(i)%z"),
        """\
prog.f90:11:15: error: type(cell) has no component 'z'
   11 |   y(i) = c(i)%z
      |               ^
""",
    ),
    "acc component that is an array": (
        in_loop("y(i) = c(i)%v + 1"),
        """\
prog.f90:11:15: error: the whole array 'v' in an expression: kernels need elements, so write a loop over them
   11 |   y(i) = c(i)%v + 1
      |               ^
""",
    ),
    "acc component with a section": (
        in_loop("y(i) = c(i)%v(1, :)"),
        """\
prog.f90:11:15: error: a section of 'v': kernels need elements, so write a loop over them
   11 |   y(i) = c(i)%v(1, :)
      |               ^
""",
    ),
    "acc component subscripts": (
        in_loop("y(i) = c(i)%v(1)"),
        """\
prog.f90:11:15: error: 1 subscript for 'v', which has 2 dimensions
   11 |   y(i) = c(i)%v(1)
      |               ^
""",
    ),
    "acc component that is no array": (
        in_loop("y(i) = c(i)%x(1)"),
        """\
prog.f90:11:15: error: the component 'x' is no array
   11 |   y(i) = c(i)%x(1)
      |               ^
""",
    ),
    "acc component of an array": (
        in_loop("y(i) = c%x"),
        """\
prog.f90:11:10: error: the whole array 'c' in an expression: kernels need elements, so write a loop over them
   11 |   y(i) = c%x
      |          ^
""",
    ),
    "acc pointer component": (
        in_loop("y(i) = c(i)%far"),
        """\
prog.f90:11:15: error: the component 'far' is allocatable or a pointer, which kernels cannot use yet
   11 |   y(i) = c(i)%far
      |               ^~~
""",
    ),
    "acc sum of types": (
        in_loop("c(i) = c(i) + c(1)"),
        """\
prog.f90:11:15: error: '+' is not for type(cell) and type(cell)
   11 |   c(i) = c(i) + c(1)
      |               ^
""",
    ),
    "acc type into a number": (
        in_loop("y(i) = one"),
        """\
prog.f90:11:10: error: type(cell) cannot become real(4)
   11 |   y(i) = one
      |          ^~~
""",
    ),
    "acc number into a type": (
        in_loop("c(i) = 1"),
        """\
prog.f90:11:10: error: integer(4) cannot become type(cell)
   11 |   c(i) = 1
      |          ^
""",
    ),
    "acc compared types": (
        in_loop("if (one == two) y(i) = 1"),
        """\
prog.f90:11:11: error: '==' is not for type(cell) and type(cell)
   11 |   if (one == two) y(i) = 1
      |           ^~
""",
    ),
    "acc function of a type": (
        in_loop("y(i) = sqrt(one)"),
        """\
prog.f90:11:10: error: sqrt of type(cell) is not possible in a kernel
   11 |   y(i) = sqrt(one)
      |          ^~~~
""",
    ),
    "acc reduction of a type": (
        with_types("!$acc parallel loop reduction(+: one)", "do i = 1, 8", "  one%x = one%x + i", "end do"),
        """\
prog.f90:9:34: error: reduction of 'one' of type(cell) is not possible
    9 | !$acc parallel loop reduction(+: one)
      |                                  ^~~
""",
    ),
    "acc component in a clause": (
        with_types("!$acc parallel loop reduction(+: one%x)", "do i = 1, 8", "  one%x = one%x + i", "end do"),
        """\
prog.f90:9:34: error: a component in a clause of acc must be an array that is allocatable, a pointer or distributed; name the variable 'one'
    9 | !$acc parallel loop reduction(+: one%x)
      |                                  ^~~
""",
    ),
    "acc type with procedures": (
        "module m\n  type :: t\n    integer :: n\n  contains\n    procedure :: s\n  end type t\ncontains\n  subroutine s(this)\n    class(t) :: this\n  end subroutine s\nend module m\nprogram prog\n  use m\n  type(t) :: a(4)\n!$acc parallel loop\n  do i = 1, 4\n    a(i)%n = i\n  end do\nend program prog\n",
        """\
prog.f90:17:5: error: the type of 'a' has procedures, which kernels do not have yet
   17 |     a(i)%n = i
      |     ^
prog.f90:2:11: note: the type is defined here
    2 |   type :: t
      |           ^
""",
    ),
    "acc type unknown": (
        "program prog\n  use other\n  type(cell) :: c(8)\n!$acc parallel loop\n  do i = 1, 8\n    c(i)%x = 1\n  end do\nend program prog\n",
        """\
prog.f90:6:5: error: the type of 'c', cell, is not known here; define it in this file or in a module that is compiled by peerway fc
    6 |     c(i)%x = 1
      |     ^
""",
    ),
    "acc type in itself": (
        "program prog\n  type :: t\n    type(t) :: inner\n  end type t\n  type(t) :: c(8)\n!$acc parallel loop\n  do i = 1, 8\n    c(i) = c(1)\n  end do\nend program prog\n",
        """\
prog.f90:3:16: error: 't' has itself as a component
    3 |     type(t) :: inner
      |                ^~~~~
prog.f90:2:11: note: its definition
    2 |   type :: t
      |           ^
""",
    ),
    "acc type of characters": (
        "program prog\n  type :: t\n    character(3) :: name\n  end type t\n  type(t) :: c(8)\n!$acc parallel loop\n  do i = 1, 8\n    c(i) = c(1)\n  end do\nend program prog\n",
        """\
prog.f90:3:21: error: the component 'name' is of character(3), which kernels do not have yet
    3 |     character(3) :: name
      |                     ^~~~
""",
    ),
    "acc empty type": (
        "program prog\n  type :: t\n  end type t\n  type(t) :: c(8)\n!$acc parallel loop\n  do i = 1, 8\n    c(i) = c(1)\n  end do\nend program prog\n",
        """\
prog.f90:7:5: error: the type of 'c' has no components, which kernels do not have yet
    7 |     c(i) = c(1)
      |     ^
prog.f90:2:11: note: the type is defined here
    2 |   type :: t
      |           ^
""",
    ),
    "acc component argument": (
        with_types(
            "!$acc parallel loop",
            "do i = 1, 8",
            "  call s(c(i)%x)",
            "end do",
            "contains",
            "  subroutine s(a)",
            "    real :: a(2)",
            "    a(1) = 1",
            "  end subroutine s",
        ),
        """\
prog.f90:11:15: error: the component 'x' is no array
   11 |   call s(c(i)%x)
      |               ^
""",
    ),
    "acc component argument type": (
        with_types(
            "!$acc parallel loop",
            "do i = 1, 8",
            "  call s(c(i)%v)",
            "end do",
            "contains",
            "  subroutine s(a)",
            "    real(8) :: a(2)",
            "    a(1) = 1",
            "  end subroutine s",
        ),
        """\
prog.f90:11:10: error: argument 'a' of 's' is of real(8), and this of real(4)
   11 |   call s(c(i)%v)
      |          ^
""",
    ),
    "acc expression changes": (
        with_types(
            "!$acc parallel loop",
            "do i = 1, 8",
            "  call s(y(i) + 1)",
            "end do",
            "contains",
            "  subroutine s(a)",
            "    real :: a",
            "    a = 1",
            "  end subroutine s",
        ),
        """\
prog.f90:11:10: error: 's' changes its argument 'a', so a variable of real(4) must be here
   11 |   call s(y(i) + 1)
      |          ^
""",
    ),
    "acc constructor": (
        in_loop("c(i) = cell(1.0, 2.0, null())"),
        """\
prog.f90:11:10: error: type(cell) has components that are no single values; assign them one by one
   11 |   c(i) = cell(1.0, 2.0, null())
      |          ^~~~
""",
    ),
    "percent end": (
        in_loop("y(i) = c(i)%"),
        """\
prog.f90:11:14: error: expected an operator, found '%'
   11 |   y(i) = c(i)%
      |              ^
""",
    ),
    "acc image": (
        with_types("integer :: x(8)[*]", "!$acc parallel loop", "do i = 1, 8", "  y(i) = x(i)[2]", "end do"),
        """\
prog.f90:12:10: error: 'x' of another image in a kernel; assign it to a variable before
   12 |   y(i) = x(i)[2]
      |          ^
""",
    ),
    "acc image changed": (
        with_types("integer :: x(8)[*]", "!$acc parallel loop", "do i = 1, 8", "  x(i)[2] = i", "end do"),
        """\
prog.f90:12:3: error: a kernel cannot assign to 'x' of another image
   12 |   x(i)[2] = i
      |   ^
""",
    ),
    "acc no do": (
        in_program("!$acc parallel loop", "b(1) = 1"),
        """\
prog.f90:9:7: error: expected a DO with an index behind this directive
    9 | !$acc parallel loop
      |       ^~~~~~~~~~~~~
prog.f90:10:1: note: this follows
   10 | b(1) = 1
      | ^
""",
    ),
    "acc clause": (
        in_program("!$acc parallel loop privat(x)", "do i = 1, n", "end do"),
        """\
prog.f90:9:21: error: 'privat' is no clause of acc parallel loop; did you mean private?
    9 | !$acc parallel loop privat(x)
      |                     ^~~~~~
""",
    ),
    "acc reduction": (
        in_program("!$acc parallel loop reduction(sum: x)", "do i = 1, n", "end do"),
        """\
prog.f90:9:21: error: expected an operator (+, *, max, min, .and., .or., iand, ior, ieor), a colon and variables
    9 | !$acc parallel loop reduction(sum: x)
      |                     ^~~~~~~~~
""",
    ),
    "acc exit": (
        in_program("!$acc parallel loop", "do i = 1, n", "  if (i == 3) exit", "end do"),
        """\
prog.f90:11:15: error: EXIT leaves a loop whose iterations run in parallel
   11 |   if (i == 3) exit
      |               ^~~~
""",
    ),
    "acc no end": (
        in_program("!$acc parallel", "b(1) = 1"),
        """\
prog.f90:9:7: error: this construct has no end; write '!$acc end parallel' behind its statements
    9 | !$acc parallel
      |       ^~~~~~~~
""",
    ),
    "acc end": (
        in_program("!$acc end kernels"),
        """\
prog.f90:9:7: error: there is no acc kernels that this could end
    9 | !$acc end kernels
      |       ^~~~~~~~~~~
""",
    ),
    "acc loop": (
        in_program("!$acc loop", "do i = 1, n", "end do"),
        """\
prog.f90:9:7: error: acc loop is in no parallel, kernels or serial construct
    9 | !$acc loop
      |       ^~~~
""",
    ),
    "acc beside": (
        in_program(
            "!$acc parallel",
            "x = 1",
            "!$acc loop",
            "do i = 1, n",
            "  b(i) = x",
            "end do",
            "!$acc end parallel",
        ),
        """\
prog.f90:10:1: error: this statement beside the loops of acc parallel changes 'x', which each gang has for itself; write it before the construct, or use acc kernels
   10 | x = 1
      | ^
""",
    ),
    "acc section data": (
        in_program("!$acc data copy(a(1:3, :))", "!$acc end data"),
        """\
prog.f90:9:17: error: the node's part of the distributed array 'a' is always whole in clauses of data; name it without a section
    9 | !$acc data copy(a(1:3, :))
      |                 ^
""",
    ),
    "acc declare": (
        in_program("!$acc declare create(b)", "b(1) = 1"),
        """\
prog.f90:9:7: error: acc declare is not supported in Fortran yet; use data, or enter data and exit data
    9 | !$acc declare create(b)
      |       ^~~~~~~
""",
    ),
    "acc collapse": (
        in_program("!$acc parallel loop collapse(2)", "do i = 1, n", "  b(i) = 1", "end do"),
        """\
prog.f90:9:7: error: collapse names more loops than are nested directly
    9 | !$acc parallel loop collapse(2)
      |       ^~~~~~~~~~~~~
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
        in_program("!$xmp align c%x(i) with t(i)"),
        """\
prog.f90:9:13: error: 'c' has no component 'x'
    9 | !$xmp align c%x(i) with t(i)
      |             ^~~
prog.f90:3:31: note: 'c' is declared here
    3 |   real(8) :: a(n, n), b(0:n), c(n)
      |                               ^
""",
    ),
    "component of another variable": (
        in_program(
            "type cell",
            "  real :: x(n)",
            "end type cell",
            "type(cell) :: one, other",
            "!$xmp align one%x(i) with t(i)",
        ),
        """\
prog.f90:12:20: error: the component 'x' of type 'cell' is distributed, but not that of this variable 'other'; align it here
   12 | type(cell) :: one, other
      |                    ^~~~~
prog.f90:9:6: note: the type is defined here
    9 | type cell
      |      ^~~~
""",
    ),
    "component of an array": (
        in_program(
            "type cell",
            "  real :: x(n)",
            "end type cell",
            "type(cell) :: many(3)",
            "!$xmp align cell%x(i) with t(i)",
        ),
        """\
prog.f90:13:13: error: 'many' is an array, so its component 'x' cannot be distributed
   13 | !$xmp align cell%x(i) with t(i)
      |             ^~~~~~
prog.f90:12:15: note: 'many' is declared here
   12 | type(cell) :: many(3)
      |               ^~~~
""",
    ),
    "component of a component": (
        in_program(
            "type cell",
            "  real :: x(n)",
            "end type cell",
            "type grid",
            "  type(cell) :: cells",
            "end type grid",
            "type(cell) :: one",
            "!$xmp align one%x(i) with t(i)",
        ),
        """\
prog.f90:13:17: error: type 'grid' has a component of type 'cell', whose 'x' is distributed
   13 |   type(cell) :: cells
      |                 ^~~~~
prog.f90:9:6: note: the type is defined here
    9 | type cell
      |      ^~~~
""",
    ),
    "variable without its component": (
        in_program(
            "type cell",
            "  real :: x(n)",
            "end type cell",
            "type(cell) :: one, other",
            "!$xmp align cell%x(i) with t(i)",
            "one = other",
        ),
        """\
prog.f90:14:1: error: 'one' is used as a whole, without its distributed array 'one%x'
   14 | one = other
      | ^~~
""",
    ),
    "type without variables": (
        in_program("type cell", "  real :: x(n)", "end type cell", "!$xmp align cell%x(i) with t(i)"),
        """\
prog.f90:12:13: error: 'cell' is neither a variable of this scope nor a type that has variables here
   12 | !$xmp align cell%x(i) with t(i)
      |             ^~~~~~
""",
    ),
    "coarray on no nodes": (
        in_program("integer :: x[*]", "!$xmp coarray on q :: x"),
        """\
prog.f90:10:18: error: there is no node array 'q'; declare it with '!$xmp nodes'
   10 | !$xmp coarray on q :: x
      |                  ^
""",
    ),
    "coarray on of no coarray": (
        in_program("integer :: x", "!$xmp coarray on p :: x"),
        """\
prog.f90:10:23: error: 'x' is no coarray that this scope declares
   10 | !$xmp coarray on p :: x
      |                       ^
""",
    ),
    "coarray without on": (
        in_program("integer :: x[*]", "!$xmp coarray x"),
        """\
prog.f90:10:15: error: expected 'on' behind coarray, found 'x'
   10 | !$xmp coarray x
      |               ^
""",
    ),
    "image before something else": (
        in_program("!$xmp image (p)", "c(1) = 2"),
        """\
prog.f90:9:7: error: expected SYNC or the call of a collective subroutine behind this directive
    9 | !$xmp image (p)
      |       ^~~~~
prog.f90:10:1: note: this follows
   10 | c(1) = 2
      | ^
""",
    ),
    "image before another call": (
        in_program("!$xmp image (p)", "call s"),
        """\
prog.f90:10:1: error: this statement is neither SYNC nor a call of co_sum, co_max, co_min or co_broadcast
   10 | call s
      | ^~~~
prog.f90:9:7: note: image stands before it
    9 | !$xmp image (p)
      |       ^~~~~
""",
    ),
    "this_image of a variable": (
        in_program("i = this_image(c)"),
        """\
prog.f90:9:5: error: this_image is supported with a coarray and dim only
    9 | i = this_image(c)
      |     ^~~~~~~~~~
""",
    ),
    "images of a variable": (
        in_program("c(1)[2] = 3"),
        """\
prog.f90:9:1: error: 'c' is no coarray, so it has no images
    9 | c(1)[2] = 3
      | ^
prog.f90:3:31: note: 'c' is declared here
    3 |   real(8) :: a(n, n), b(0:n), c(n)
      |                               ^
""",
    ),
    "dimensions of images": (
        in_program("integer :: x[2, *]", "x[1] = 3"),
        """\
prog.f90:10:3: error: 'x' has 2 dimensions of images
   10 | x[1] = 3
      |   ^
""",
    ),
    "allocate without dimensions of images": (
        in_program("integer, allocatable :: x[:, :]", "allocate (x[*])"),
        """\
prog.f90:10:11: error: allocate 'x' with 2 dimensions of images, as in [2, *]
   10 | allocate (x[*])
      |           ^
""",
    ),
    "a component of several elements at another image": (
        with_types("type(cell) :: x(2)[*]", "x(:)[1]%x = 3"),
        """\
prog.f90:10:1: error: a component of several elements at another image cannot be assigned to; assign to one element
   10 | x(:)[1]%x = 3
      | ^~~~~~~
""",
    ),
    "a pointer at another image": (
        with_types("type(cell) :: x(2)[*]", "x(1)[1]%far = 3"),
        """\
prog.f90:10:9: error: the component 'far' is allocatable or a pointer, which is not supported at another image yet
   10 | x(1)[1]%far = 3
      |         ^~~
""",
    ),
    "a section as a subscript at another image": (
        in_program("integer :: x(8)[*]", "x(x(1:2)[1])[2] = 3"),
        """\
prog.f90:10:3: error: a section of another image as a subscript is not supported; assign it to a variable before
   10 | x(x(1:2)[1])[2] = 3
      |   ^~~~~~~~~
""",
    ),
    "local alias with bounds": (
        in_program("real(8) :: x(n, n)", "!$xmp local_alias x => a"),
        """\
prog.f90:10:19: error: declare 'x' with lower bounds only, as in x(0:)
   10 | !$xmp local_alias x => a
      |                   ^
prog.f90:9:12: note: 'x' is declared here
    9 | real(8) :: x(n, n)
      |            ^
""",
    ),
    "local alias of another rank": (
        in_program("real(8) :: x(0:)", "!$xmp local_alias x => a"),
        """\
prog.f90:10:19: error: 'x' has 1 dimension, and 'a' 2
   10 | !$xmp local_alias x => a
      |                   ^
prog.f90:9:12: note: 'x' is declared here
    9 | real(8) :: x(0:)
      |            ^
""",
    ),
    "local alias without an arrow": (
        in_program("real(8) :: x(:)", "!$xmp local_alias x = a"),
        """\
prog.f90:10:21: error: expected '=>' behind the name of a local array, found '='
   10 | !$xmp local_alias x = a
      |                     ^
""",
    ),
    "local alias of nothing": (
        in_program("real(8) :: x(:)", "!$xmp local_alias x => c"),
        """\
prog.f90:10:24: error: there is no distributed array 'c'; declare it with '!$xmp align'
   10 | !$xmp local_alias x => c
      |                        ^
""",
    ),
    "margin between": (
        in_program("!$xmp loop (i, j) on t(j) margin(1)", "do j = 1, n", "  b(j) = 0", "end do"),
        """\
prog.f90:9:13: error: index 'i' of the loop is not in the on clause
    9 | !$xmp loop (i, j) on t(j) margin(1)
      |             ^
""",
    ),
    "margin statements": (
        in_program(
            "!$xmp template w(n, n)",
            "!$xmp distribute w(block, *) onto p",
            "!$xmp loop (i, j) on w(i, j) margin(1, 0)",
            "do j = 1, n",
            "  b(j) = 0",
            "  do i = 1, n",
            "  end do",
            "end do",
        ),
        """\
prog.f90:11:30: error: margin needs loops that are nested directly, and end with END DO or CONTINUE
   11 | !$xmp loop (i, j) on w(i, j) margin(1, 0)
      |                              ^~~~~~
""",
    ),
    "margin bounds": (
        in_program(
            "!$xmp template w(n, n)",
            "!$xmp distribute w(block, *) onto p",
            "!$xmp loop (i, j) on w(i, j) margin(1, 0)",
            "do j = 1, n",
            "  do i = 1, j",
            "  end do",
            "end do",
        ),
        """\
prog.f90:13:13: error: the bounds of a loop with margin must not need other indices
   13 |   do i = 1, j
      |             ^
""",
    ),
    "margin widths": (
        in_program("!$xmp loop (j) on t(j) peel_and_wait(1, -1, -1)", "do j = 1, n", "end do"),
        """\
prog.f90:9:24: error: 2 widths of peel_and_wait for 1 dimension
    9 | !$xmp loop (j) on t(j) peel_and_wait(1, -1, -1)
      |                        ^~~~~~~~~~~~~
""",
    ),
    "described": (
        in_program("status = xmp_array_ndims(xmp_desc_of(b), k)"),
        """\
prog.f90:9:38: error: 'b' is neither a node array nor a template nor a distributed array
    9 | status = xmp_array_ndims(xmp_desc_of(b), k)
      |                                      ^
""",
    ),
    "critical": (
        in_program("critical", "i = 1"),
        """\
prog.f90:9:1: error: this CRITICAL has no end
    9 | critical
      | ^~~~~~~~
""",
    ),
    "critical return": (
        in_program("critical", "if (i > 1) return", "end critical"),
        """\
prog.f90:10:12: error: RETURN leaves CRITICAL before its end
   10 | if (i > 1) return
      |            ^~~~~~
prog.f90:9:1: note: the construct begins here
    9 | critical
      | ^~~~~~~~
""",
    ),
    "critical end": (
        in_program("end critical"),
        """\
prog.f90:9:1: error: there is no CRITICAL that this could end
    9 | end critical
      | ^~~
""",
    ),
    "lock": (
        in_program("lock (b)"),
        """\
prog.f90:9:1: error: LOCK needs a coarray of type(lock_type)
    9 | lock (b)
      | ^~~~
""",
    ),
    "unlock": (
        "program prog\nuse iso_fortran_env\ntype(lock_type) :: l(2)[*]\nunlock (l(1), acquired_lock=i)\nlock (l)\nend\n",
        """\
prog.f90:4:1: error: UNLOCK has no acquired_lock=; there are stat, errmsg
    4 | unlock (l(1), acquired_lock=i)
      | ^~~~~~
prog.f90:5:7: error: 'l' has 1 dimension; name one of its locks
    5 | lock (l)
      |       ^
""",
    ),
    "co_reduce": (
        in_program("call co_reduce(b, f)", "call co_broadcast(b)"),
        """\
prog.f90:9:6: error: co_reduce is not supported; there are co_sum, co_max, co_min, co_broadcast
    9 | call co_reduce(b, f)
      |      ^~~~~~~~~
prog.f90:10:6: error: co_broadcast needs the image that has the value
   10 | call co_broadcast(b)
      |      ^~~~~~~~~~~~
""",
    ),
    "atomic": (
        in_program("call atomic_add(b, 1)", "call atomic_define(b(1), 2)"),
        """\
prog.f90:9:6: error: atomic_add is not supported: the run-time library has atomic_define and atomic_ref only; change the variable between LOCK and UNLOCK
    9 | call atomic_add(b, 1)
      |      ^~~~~~~~~~
prog.f90:10:20: error: the atom of atomic_define must be a coarray, or an element of one
   10 | call atomic_define(b(1), 2)
      |                    ^
""",
    ),
    "coarray dummy": (
        "subroutine s(x)\nreal :: x(:)[*]\nend\nrecursive subroutine r(x)\nreal :: x(2)[*]\nend\n",
        """\
prog.f90:2:9: error: give the coarray 'x' bounds: it is an argument of a procedure outside of modules
    2 | real :: x(:)[*]
      |         ^
prog.f90:5:9: error: 'x' is a dummy argument of a recursive procedure, which coarrays cannot be yet
    5 | real :: x(2)[*]
      |         ^
""",
    ),
    "kernel call": (
        in_program("!$acc parallel loop", "do i = 1, n", "  call there(b(i))", "end do"),
        """\
prog.f90:11:8: error: the subroutine 'there' is not in this file, so a kernel cannot call it
   11 |   call there(b(i))
      |        ^~~~~
""",
    ),
    "kernel argument": (
        in_program(
            "!$acc parallel loop",
            "do i = 1, n",
            "  call twice(3d0)",
            "end do",
            "contains",
            "subroutine twice(x)",
            "real(8) :: x",
            "x = 2*x",
            "end subroutine",
        ),
        """\
prog.f90:11:14: error: 'twice' changes its argument 'x', so a variable of real(8) must be here
   11 |   call twice(3d0)
      |              ^~~
""",
    ),
    "kernel array": (
        in_program(
            "!$acc parallel loop",
            "do i = 1, n",
            "  call clear(a)",
            "end do",
            "contains",
            "subroutine clear(x)",
            "real(8) :: x(n)",
            "x(1) = 0",
            "end subroutine",
        ),
        """\
prog.f90:11:14: error: 'a' is a distributed array; pass the element where the argument begins, as in a(1, j)
   11 |   call clear(a)
      |              ^
""",
    ),
    "kernel shape": (
        in_program(
            "!$acc parallel loop",
            "do i = 1, n",
            "  call clear(b)",
            "end do",
            "contains",
            "subroutine clear(x)",
            "real(8) :: x(:)",
            "x(1) = 0",
            "end subroutine",
        ),
        """\
prog.f90:14:18: error: 'clear', which a kernel calls, has 'x' without bounds; give them, as in x(n)
   14 | subroutine clear(x)
      |                  ^
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
        in_program("i = xmp_get_mpi_comm()"),
        """\
prog.f90:9:5: error: xmp_get_mpi_comm is not supported in Fortran yet; there are xmp_node_num, xmp_num_nodes, xmp_all_node_num, xmp_all_num_nodes, xmp_wtime, xmp_wtick, xmp_barrier, xmp_exit and inquiry functions
    9 | i = xmp_get_mpi_comm()
      |     ^~~~~~~~~~~~~~~~
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
    "assumed shape": (
        "subroutine s(a)\nreal :: a(:)\n!$xmp nodes p(*)\n!$xmp template t(8)\n!$xmp distribute t(block) onto p\n"
        "!$xmp align a(i) with t(i)\nend\n",
        """\
prog.f90:6:13: error: 'a' is an assumed-shape array; a procedure outside of modules and programs can have aligned ones only with bounds, as in a(n)
    6 | !$xmp align a(i) with t(i)
      |             ^
prog.f90:2:9: note: 'a' is declared here
    2 | real :: a(:)
      |         ^
""",
    ),
    "an array of the host": (
        in_program("contains", "subroutine s", "!$xmp align c(i) with t(i)", "end subroutine s"),
        """\
prog.f90:11:13: error: 'c' is declared in another scope; align it there
   11 | !$xmp align c(i) with t(i)
      |             ^
""",
    ),
    "pointer assignment": (
        in_program("!$xmp align c(i) with t(i)", "c(1) = 0", "c => d"),
        """\
prog.f90:11:1: error: 'c' is a distributed array, and no pointer
   11 | c => d
      | ^
""",
    ),
    "pointer to a section": (
        in_program("real(8), pointer :: d(:)", "!$xmp align (i) with t(i) :: c, d", "c(1) = 0", "d => c(:)"),
        """\
prog.f90:12:1: error: 'd' is a distributed array; it can only point to another one as a whole
   12 | d => c(:)
      | ^~~~~~~~~
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


def test_a_coarray_of_a_procedure_is_saved(tmp_path: Path) -> None:
    source = "subroutine s\n  integer :: x(2)[*]\n  x = 1\nend subroutine s\n"
    compilation = compiled(tmp_path, source)
    assert "save :: x" in compilation.text
    assert (compilation.status, compilation.errors) == (0, """\
prog.f90:2:14: warning: the coarray 'x' of a procedure must be SAVE or ALLOCATABLE; it is taken as SAVE
    2 |   integer :: x(2)[*]
      |              ^
""")  # fmt: skip


def test_a_loop_without_a_kernel_is_a_warning_at_its_line(tmp_path: Path) -> None:
    """What peerway cc says of the C that the loop became."""
    lines = ["!$acc parallel loop", "do i = 1, n", "  c(i) = sqrt(cmplx(c(i), 1, 8))", "end do"]
    compilation = compiled(tmp_path, in_program(*lines))
    assert (compilation.status, compilation.errors) == (0, """\
prog.f90:11:3: warning: no kernel for GPUs: 'csqrt' is not known in device code, nor is its text in this program; it runs only on CPUs
   11 |   c(i) = sqrt(cmplx(c(i), 1, 8))
      |   ^
""")  # fmt: skip


def test_kernels_have_the_default_kinds(tmp_path: Path) -> None:
    lines = ["!$acc parallel loop", "do i = 1, n", "  c(i) = 1.0", "end do"]
    compilation = compiled(tmp_path, in_program(*lines), "--emit", "-fdefault-real-8")
    assert compilation.status == 1
    message = (
        "kernels have the default kinds of Fortran: take -fdefault-real-8 out, and write kinds, as real(8)"
    )
    assert f"error: {message}\n" in compilation.errors
