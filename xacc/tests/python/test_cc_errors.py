"""Every error of `peerway cc` names the file, line and column, shows the line, and says what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import MAPPED, compiled, in_main

from peerway_xacc.codegen import clause_rules
from peerway_xacc.command_line import BadCommand, read
from peerway_xacc.frontend import grammar_acc

OPEN = """\
#pragma xmp nodes p[*]
#pragma xmp template t[:]
#pragma xmp distribute t[block] onto p
static double a[8];
#pragma xmp align a[i] with t[i]
int main(void) {
  double c[8];
"""  # seven lines
FIXED = "#pragma xmp template_fix t[8]\n  return 0;\n}\n"
FIELD = "struct field { int n; double v[N], *p; } s, many[2];\n"

ERRORS = {
    "a misspelt model": (
        in_main("#pragma xpm reflect (a)"),
        """\
prog.c:10:9: error: unknown pragma 'xpm'; did you mean xmp?
   10 | #pragma xpm reflect (a)
      |         ^~~
""",
    ),
    "a model in capitals": (
        in_main("#pragma ACC wait"),
        """\
prog.c:10:9: error: unknown pragma 'ACC'; did you mean acc?
   10 | #pragma ACC wait
      |         ^~~
""",
    ),
    "an unknown directive": (
        in_main("#pragma xmp reflekt (a)"),
        """\
prog.c:10:13: error: unknown directive 'reflekt'; did you mean reflect?
   10 | #pragma xmp reflekt (a)
      |             ^~~~~~~
""",
    ),
    "a directive that is not built yet": (
        in_main("#pragma xmp save_desc (a)"),
        """\
prog.c:10:13: error: save_desc is not supported yet
   10 | #pragma xmp save_desc (a)
      |             ^~~~~~~~~
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
    "an alignment of a member that there is not": (
        MAPPED + FIELD + "#pragma xmp align s.w[i] with t[i][*]\n",
        """\
prog.c:10:19: error: 's' has no member 'w'
   10 | #pragma xmp align s.w[i] with t[i][*]
      |                   ^~~
prog.c:9:42: note: 's' is declared here
    9 | struct field { int n; double v[N], *p; } s, many[2];
      |                                          ^
""",
    ),
    "an alignment of a member of an array": (
        MAPPED + FIELD + "#pragma xmp align many.v[i] with t[i][*]\n",
        """\
prog.c:10:19: error: 'many' is an array, whose members have no mapping; name a struct
   10 | #pragma xmp align many.v[i] with t[i][*]
      |                   ^~~~~~
prog.c:9:45: note: 'many' is declared here
    9 | struct field { int n; double v[N], *p; } s, many[2];
      |                                             ^~~~~~~
""",
    ),
    "an alignment of a member behind a pointer": (
        MAPPED + FIELD + "#pragma xmp align s->v[i] with t[i][*]\n",
        """\
prog.c:10:20: error: a member that a pointer leads to has no mapping; name the struct itself, as in s.a
   10 | #pragma xmp align s->v[i] with t[i][*]
      |                    ^~
""",
    ),
    "an alignment of a member of a member": (
        MAPPED + FIELD + "#pragma xmp align s.v.w[i] with t[i][*]\n",
        """\
prog.c:10:22: error: only members of a variable can be named, not members of members
   10 | #pragma xmp align s.v.w[i] with t[i][*]
      |                      ^
""",
    ),
    "an alignment of a member of nothing": (
        MAPPED + FIELD + "#pragma xmp align x.v[i] with t[i][*]\n",
        """\
prog.c:10:19: error: 'x' is neither a variable nor a struct that has variables here
   10 | #pragma xmp align x.v[i] with t[i][*]
      |                   ^~~
""",
    ),
    "an alignment of all structs of a tag of which a function has one": (
        MAPPED
        + FIELD
        + "#pragma xmp align field.v[i] with t[i][*]\n"
        + "void f(void) {\n"
        + "  struct field own;\n"
        + "  own.n = 1;\n"
        + "}\n",
        """\
prog.c:10:19: error: a function has a struct 'field'; align 'own.v' there
   10 | #pragma xmp align field.v[i] with t[i][*]
      |                   ^~~~~~~
prog.c:12:16: note: 'own' is declared here
   12 |   struct field own;
      |                ^~~
""",
    ),
    "a copy of a struct that has a distributed array": (
        MAPPED
        + FIELD
        + "#pragma xmp align s.v[i] with t[i][*]\n"
        + "void f(void) {\n"
        + "  many[0] = s;\n"
        + "}\n",
        """\
prog.c:12:13: error: 's' is used as a whole, without its array 's.v'
   12 |   many[0] = s;
      |             ^
prog.c:10:19: note: 's.v' is aligned here
   10 | #pragma xmp align s.v[i] with t[i][*]
      |                   ^~~
""",
    ),
    "a distributed array reached by a struct's address": (
        MAPPED
        + FIELD
        + "#pragma xmp align s.v[i] with t[i][*]\n"
        + "void g(struct field* q) { q->v[0] = 1; }\n"
        + "void f(void) {\n"
        + "  g(&s);\n"
        + "}\n",
        """\
prog.c:11:27: error: 's.v' is a distributed array, which the address of 's' does not lead to
   11 | void g(struct field* q) { q->v[0] = 1; }
      |                           ^~~~
prog.c:10:19: note: 's.v' is aligned here
   10 | #pragma xmp align s.v[i] with t[i][*]
      |                   ^~~
""",
    ),
    "a member of a parameter": (
        MAPPED
        + "struct one { double v[N]; };\n"
        + "void f(struct one x) {\n"
        + "#pragma xmp align x.v[i] with t[i][*]\n"
        + "  x.v[0] = 1;\n"
        + "}\n",
        """\
prog.c:11:19: error: 'x' is a parameter; the members of a struct that is passed by value have no mapping
   11 | #pragma xmp align x.v[i] with t[i][*]
      |                   ^~~
prog.c:10:19: note: 'x' is declared here
   10 | void f(struct one x) {
      |                   ^
""",
    ),
    "lines with other numbers": (
        '#line 5 "gone.y"\n' + in_main("#pragma xmp barrier"),
        """\
prog.c:1:1: error: #line in a file with directives is not supported; take it out (of yacc and lex: option -l)
    1 | #line 5 "gone.y"
      | ^~~~~
""",
    ),
    "a lock that is none": (
        in_main("#pragma xmp lock (a)"),
        """\
prog.c:10:19: error: 'a' is no coarray of xmp_lock_t; declare 'xmp_lock_t a:[*];'
   10 | #pragma xmp lock (a)
      |                   ^
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
prog.c:10:27: error: 'num_gang' is no clause of acc parallel loop; did you mean num_gangs?
   10 | #pragma acc parallel loop num_gang(3)
      |                           ^~~~~~~~
""",
    ),
    "a clause of another construct": (
        in_main("#pragma acc enter data copyout(c)"),
        """\
prog.c:10:24: error: 'copyout' is no clause of acc enter data; did you mean copyin?
   10 | #pragma acc enter data copyout(c)
      |                        ^~~~~~~
""",
    ),
    "a variable that default(none) wants named": (
        in_main(
            "  int k = 0;",
            "#pragma acc data copy(c)",
            "#pragma acc parallel loop default(none)",
            "  for (int i = 0; i < N; i++) c[i] = k;",
        ),
        """\
prog.c:13:38: error: 'k' is used in a construct with default(none), and no clause names it
   13 |   for (int i = 0; i < N; i++) c[i] = k;
      |                                      ^
prog.c:12:13: note: the construct
   12 | #pragma acc parallel loop default(none)
      |             ^~~~~~~~
""",
    ),
    "a word that default does not know": (
        in_main("#pragma acc parallel loop default(shared)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:35: error: expected 'none' or 'present', found 'shared'
   10 | #pragma acc parallel loop default(shared)
      |                                   ^~~~~~
""",
    ),
    "deviceptr of no pointer": (
        in_main("#pragma acc data deviceptr(c)", "  c[0] = 0;"),
        """\
prog.c:10:28: error: 'c' is no pointer, which deviceptr needs
   10 | #pragma acc data deviceptr(c)
      |                            ^
""",
    ),
    "deviceptr of a distributed array": (
        in_main("#pragma acc data deviceptr(a)", "  c[0] = 0;"),
        """\
prog.c:10:28: error: 'a' is a distributed array, and deviceptr is of pointers
   10 | #pragma acc data deviceptr(a)
      |                            ^
""",
    ),
    "a section that is not contiguous": (
        in_main("  static int rows[N][N];", "#pragma acc enter data copyin(rows[0:2][3:2])"),
        """\
prog.c:11:31: error: this section of 'rows' is not contiguous, which a data clause needs; name whole rows
   11 | #pragma acc enter data copyin(rows[0:2][3:2])
      |                               ^~~~
""",
    ),
    "a section of pointers to pointers": (
        in_main("  double ***q = 0;", "#pragma acc enter data copyin(q[0:2][0:3][0:4])"),
        """\
prog.c:11:31: error: 'q' has 1 dimension, and 3 subscripts here
   11 | #pragma acc enter data copyin(q[0:2][0:3][0:4])
      |                               ^
""",
    ),
    "an update of pointers": (
        in_main("  double *q[4];", "#pragma acc update host(q)"),
        """\
prog.c:11:25: error: an update of the pointers of 'q' would mix those of the host and of the GPU; name what \
they lead to, as in q[0:n][0:m]
   11 | #pragma acc update host(q)
      |                         ^
""",
    ),
    "rows of no length": (
        in_main("  double **q = 0;", "#pragma acc enter data copyin(q[0:2][0:])"),
        """\
prog.c:11:31: error: the length of the rows of 'q' is not known; write [0:length]
   11 | #pragma acc enter data copyin(q[0:2][0:])
      |                               ^
""",
    ),
    "a private distributed array": (
        in_main(
            "#pragma acc parallel loop",
            "  for (int i = 0; i < N; i++) {",
            "#pragma acc loop seq private(a)",
            "    for (int j = 0; j < N; j++) c[i] += j;",
            "  }",
        ),
        """\
prog.c:12:30: error: 'a' is a distributed array, which cannot be private
   12 | #pragma acc loop seq private(a)
      |                              ^
""",
    ),
    "a loop on a template before it is fixed": (
        OPEN + "#pragma xmp loop on t[i]\n  for (int i = 0; i < 8; i++) c[i] = 0;\n" + FIXED,
        """\
prog.c:8:21: error: template 't' is used before it is fixed
    8 | #pragma xmp loop on t[i]
      |                     ^
prog.c:10:13: note: it is fixed here
   10 | #pragma xmp template_fix t[8]
      |             ^~~~~~~~~~~~
""",
    ),
    "a task on a template before it is fixed": (
        OPEN + "#pragma xmp task on t[0]\n  c[0] = 0;\n" + FIXED,
        """\
prog.c:8:21: error: template 't' is used before it is fixed
    8 | #pragma xmp task on t[0]
      |                     ^
prog.c:10:13: note: it is fixed here
   10 | #pragma xmp template_fix t[8]
      |             ^~~~~~~~~~~~
""",
    ),
    "a gmove with acc of another array": (
        in_main("#pragma xmp gmove acc(b)", "  a[0][:] = a[1][:];"),
        """\
prog.c:10:23: error: 'b' is on neither side of this gmove
   10 | #pragma xmp gmove acc(b)
      |                       ^
""",
    ),
    "a gmove in of what nobody else has": (
        in_main("#pragma xmp gmove in", "  a[0][:] = 1;"),
        """\
prog.c:11:13: error: expected an array on the right of gmove in
   11 |   a[0][:] = 1;
      |             ^
""",
    ),
    "a gmove before the template is fixed": (
        OPEN + "#pragma xmp gmove\n  c[:] = a[:];\n" + FIXED,
        """\
prog.c:9:10: error: template 't' is used before it is fixed
    9 |   c[:] = a[:];
      |          ^~~~
prog.c:10:13: note: it is fixed here
   10 | #pragma xmp template_fix t[8]
      |             ^~~~~~~~~~~~
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
    "a node array without nodes": (
        "#pragma xmp nodes p[0]\n",
        """\
prog.c:1:21: error: a number of nodes must be at least 1
    1 | #pragma xmp nodes p[0]
      |                     ^
""",
    ),
    "blocks without indices": (
        "#pragma xmp nodes p[*]\n#pragma xmp template t[8]\n#pragma xmp distribute t[cyclic(0)] onto p\n",
        """\
prog.c:3:33: error: the width of a block must be at least 1
    3 | #pragma xmp distribute t[cyclic(0)] onto p
      |                                 ^
""",
    ),
    "a shadow that is less than nothing": (
        MAPPED + "#pragma xmp shadow b[1:-1][0]\n",
        """\
prog.c:9:24: error: the width of the upper side must be at least 0
    9 | #pragma xmp shadow b[1:-1][0]
      |                        ^~
""",
    ),
    "an index that no loop has": (
        in_main("#pragma xmp loop on t[i][*]", "  for (int k = 0; k < N; k++) c[k] = 0;"),
        """\
prog.c:10:23: error: there is no loop over 'i' behind this directive
   10 | #pragma xmp loop on t[i][*]
      |                       ^
""",
    ),
    "a loop that hides its index": (
        in_main("  int i = 0;", "#pragma xmp loop on t[i][*]", "  for (; i < N; ) c[i++] = 0;"),
        """\
prog.c:12:3: error: expected 'i = first' with one index
   12 |   for (; i < N; ) c[i++] = 0;
      |   ^~~
""",
    ),
    "a place of the on clause that moves": (
        in_main("  int i = 0;", "#pragma xmp loop on t[i][*]", "  for (int k = 0; k < N; k++) c[i++] = 0;"),
        """\
prog.c:11:23: error: 'i' is changed in the loop, but no loop has it as its index
   11 | #pragma xmp loop on t[i][*]
      |                       ^
""",
    ),
    "a break out of a distributed loop": (
        in_main("#pragma xmp loop on t[i][*]", "  for (int i = 0; i < N; i++) if (c[i] > 1) break;"),
        """\
prog.c:11:45: error: break leaves a distributed loop, in which other nodes would go on
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) break;
      |                                             ^~~~~
prog.c:11:3: note: the loop is this one
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) break;
      |   ^~~
""",
    ),
    "a return out of a distributed loop": (
        in_main("#pragma xmp loop on t[i][*]", "  for (int i = 0; i < N; i++) if (c[i] > 1) return 1;"),
        """\
prog.c:11:45: error: return leaves a distributed loop, in which other nodes would go on
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) return 1;
      |                                             ^~~~~~
prog.c:11:3: note: the loop is this one
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) return 1;
      |   ^~~
""",
    ),
    "a goto out of a distributed loop": (
        in_main(
            "#pragma xmp loop on t[i][*]",
            "  for (int i = 0; i < N; i++) if (c[i] > 1) goto out;",
            "  out: c[0] = 0;",
        ),
        """\
prog.c:11:45: error: goto leaves a distributed loop, in which other nodes would go on
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) goto out;
      |                                             ^~~~
prog.c:11:3: note: the loop is this one
   11 |   for (int i = 0; i < N; i++) if (c[i] > 1) goto out;
      |   ^~~
""",
    ),
    "a break out of a collapsed loop of acc": (
        in_main(
            "#pragma acc parallel loop collapse(2)",
            "  for (int i = 0; i < 4; i++)",
            "    for (int j = 0; j < 4; j++) if (j > i) break;",
        ),
        """\
prog.c:12:44: error: break leaves a loop whose iterations run in parallel
   12 |     for (int j = 0; j < 4; j++) if (j > i) break;
      |                                            ^~~~~
prog.c:12:5: note: the loop is this one
   12 |     for (int j = 0; j < 4; j++) if (j > i) break;
      |     ^~~
""",
    ),
    "a return out of a loop of acc in another": (
        in_main(
            "#pragma acc parallel loop",
            "  for (int i = 0; i < 4; i++) {",
            "#pragma acc loop vector",
            "    for (int j = 0; j < 4; j++) if (j > i) return 1;",
            "  }",
        ),
        """\
prog.c:13:44: error: return leaves a loop whose iterations run in parallel
   13 |     for (int j = 0; j < 4; j++) if (j > i) return 1;
      |                                            ^~~~~~
prog.c:11:3: note: the loop is this one
   11 |   for (int i = 0; i < 4; i++) {
      |   ^~~
""",
    ),
    "an index that its loop's body changes": (
        in_main("#pragma xmp loop on t[i][*]", "  for (int i = 0; i < N; i++) c[i++] = 0;"),
        """\
prog.c:11:33: error: 'i' is changed inside its loop, which is distributed over nodes by 'i'
   11 |   for (int i = 0; i < N; i++) c[i++] = 0;
      |                                 ^
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
    "a condition that is more than a bound": (
        in_main("#pragma xmp loop (i) on t[i][*]", "  for (int i = 1; i < N && N > 1; i++) a[i][0] = 0;"),
        """\
prog.c:11:19: error: expected 'i < last', or with <=, >, >= or !=, found 'i < N && N > 1'
   11 |   for (int i = 1; i < N && N > 1; i++) a[i][0] = 0;
      |                   ^~~~~~~~~~~~~~
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
    "a template that nothing fixes": (
        OPEN + "  a[0] = c[0];\n  return 0;\n}\n",
        """\
prog.c:2:22: error: template 't' is not fixed in this file
    2 | #pragma xmp template t[:]
      |                      ^
""",
    ),
    "a function's array that is used before a call fixes its template": (
        OPEN.replace("int main", "static void init(void);\nint main")
        + "  double own[8];\n#pragma xmp align own[i] with t[i]\n  own[0] = c[0];\n  init();\n"
        "  return 0;\n}\nstatic void init(void) {\n#pragma xmp template_fix t[8]\n}\n",
        """\
prog.c:11:3: error: 'own' is used before its template is fixed
   11 |   own[0] = c[0];
      |   ^~~
prog.c:12:3: note: its template is fixed here
   12 |   init();
      |   ^
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
    "an index that is no integer": (
        in_main("#pragma xmp loop (i) on t[i][*]", "  for (double i = 0; i < N; i++) c[0] = i;"),
        """\
prog.c:11:8: error: the index 'i' of a distributed loop is an integer, not double
   11 |   for (double i = 0; i < N; i++) c[0] = i;
      |        ^~~~~~~~~~~~
""",
    ),
    "a step of 0": (
        in_main("#pragma xmp loop (i) on t[i][*]", "  for (int i = 0; i < N; i += 0) c[i] = 0;"),
        """\
prog.c:11:26: error: expected a step that is not 0, found 'i += 0'
   11 |   for (int i = 0; i < N; i += 0) c[i] = 0;
      |                          ^~~~~~
""",
    ),
    "threads of a block that are none": (
        in_main("#pragma acc parallel loop vector_length(-4)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:41: error: vector_length must be at least 1, not -4
   10 | #pragma acc parallel loop vector_length(-4)
      |                                         ^~
""",
    ),
    "gangs that are none": (
        in_main("#pragma acc parallel loop num_gangs(0)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:37: error: num_gangs must be at least 1, not 0
   10 | #pragma acc parallel loop num_gangs(0)
      |                                     ^
""",
    ),
    "a queue that is none": (
        in_main("#pragma acc parallel loop async(-5)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:33: error: a queue is a number from 0 on, not -5
   10 | #pragma acc parallel loop async(-5)
      |                                 ^~
""",
    ),
    "a queue that nothing can wait for": (
        in_main("#pragma acc wait(1, -7)"),
        """\
prog.c:10:21: error: a queue is a number from 0 on, not -7
   10 | #pragma acc wait(1, -7)
      |                     ^~
""",
    ),
    "a distributed array that each thread is to have": (
        in_main("#pragma acc parallel loop private(a)", "  for (int i = 0; i < N; i++) c[i] = 0;"),
        """\
prog.c:10:35: error: 'a' is a distributed array, which cannot be private
   10 | #pragma acc parallel loop private(a)
      |                                   ^
""",
    ),
    "a section past the end of an array": (
        in_main("#pragma acc enter data copyin(c[8:9])"),
        """\
prog.c:10:35: error: 9 elements from 8 on, but 'c' has 0 to 15 here
   10 | #pragma acc enter data copyin(c[8:9])
      |                                   ^
""",
    ),
    "a section before the beginning of an array": (
        in_main("#pragma acc update host(c[-3:4])"),
        """\
prog.c:10:27: error: 4 elements from -3 on, but 'c' has 0 to 15 here
   10 | #pragma acc update host(c[-3:4])
      |                           ^~
""",
    ),
    "an update of nothing": (
        in_main("#pragma acc update"),
        """\
prog.c:10:13: error: acc update without a clause of host, self, device does nothing
   10 | #pragma acc update
      |             ^~~~~~
""",
    ),
    "a data of nothing": (
        in_main("#pragma acc data if(1)", "  { }"),
        """\
prog.c:10:13: error: acc data without a clause of default, copy, copyin, copyout, create, no_create, \
present, deviceptr, attach does nothing
   10 | #pragma acc data if(1)
      |             ^~~~
""",
    ),
    "an enter data of nothing": (
        in_main("#pragma acc enter data async"),
        """\
prog.c:10:13: error: acc enter data without a clause of copyin, create, attach does nothing
   10 | #pragma acc enter data async
      |             ^~~~~
""",
    ),
    "an exit data of nothing": (
        in_main("#pragma acc exit data finalize"),
        """\
prog.c:10:13: error: acc exit data without a clause of copyout, delete, detach does nothing
   10 | #pragma acc exit data finalize
      |             ^~~~
""",
    ),
    "a host_data of nothing": (
        in_main("#pragma acc host_data", "  { }"),
        """\
prog.c:10:13: error: acc host_data without a clause of use_device does nothing
   10 | #pragma acc host_data
      |             ^~~~~~~~~
""",
    ),
    "a wait outside of functions": (
        MAPPED + "#pragma acc wait\n",
        """\
prog.c:9:13: error: this directive must be in a function
    9 | #pragma acc wait
      |             ^~~~
""",
    ),
    "two constructs for one loop": (
        in_main(
            "#pragma acc parallel loop", "#pragma acc kernels loop", "  for (int i = 0; i < N; i++) c[i] = 0;"
        ),
        """\
prog.c:11:13: error: a second directive of this kind for the same statement
   11 | #pragma acc kernels loop
      |             ^~~~~~~
prog.c:10:13: note: the first is here
   10 | #pragma acc parallel loop
      |             ^~~~~~~~
""",
    ),
    "a reflect where a GPU computes": (
        in_main(
            "#pragma acc parallel loop", "  for (int i = 0; i < N; i++) {", "#pragma xmp reflect (a)", "  }"
        ),
        """\
prog.c:12:13: error: xmp reflect runs on the host; move it out of the statement that the GPU executes
   12 | #pragma xmp reflect (a)
      |             ^~~~~~~
prog.c:11:3: note: the statement begins here
   11 |   for (int i = 0; i < N; i++) {
      |   ^
""",
    ),
    "a task where a GPU computes": (
        in_main(
            "#pragma acc parallel loop",
            "  for (int i = 0; i < N; i++) {",
            "#pragma xmp task on p[0]",
            "    c[i] = 0;",
            "  }",
        ),
        """\
prog.c:12:13: error: xmp task runs on the host; move it out of the statement that the GPU executes
   12 | #pragma xmp task on p[0]
      |             ^~~~
prog.c:11:3: note: the statement begins here
   11 |   for (int i = 0; i < N; i++) {
      |   ^
""",
    ),
    "an enter data where a GPU computes": (
        in_main("#pragma acc parallel", "  {", "#pragma acc enter data copyin(c)", "  }"),
        """\
prog.c:12:13: error: acc enter data runs on the host; move it out of the statement that the GPU executes
   12 | #pragma acc enter data copyin(c)
      |             ^~~~~
prog.c:11:3: note: the statement begins here
   11 |   {
      |   ^
""",
    ),
    "an array assignment of other lengths": (
        in_main("#pragma xmp array on t[0:4][*]", "  a[0:4][0] = b[0:3][0];"),
        """\
prog.c:11:15: error: 3 elements are assigned to 4; they must be as many
   11 |   a[0:4][0] = b[0:3][0];
      |               ^~~~~~~~~
""",
    ),
    "a pointer of the file to a distributed array": (
        MAPPED + "static double *first = &a[0][0];\n",
        """\
prog.c:9:25: error: distributed array 'a' is used outside of functions, but has no address before main
    9 | static double *first = &a[0][0];
      |                         ^
prog.c:6:19: note: it is aligned here
    6 | #pragma xmp align a[i][j] with t[i][j]
      |                   ^
""",
    ),
    "more nodes than an int counts": (
        "#pragma xmp nodes q[99999999999999999999]\n",
        """\
prog.c:1:21: error: a number of nodes must be at most 2147483647
    1 | #pragma xmp nodes q[99999999999999999999]
      |                     ^~~~~~~~~~~~~~~~~~~~
""",
    ),
    "a node before the first": (
        in_main("#pragma xmp task on p[-1]", "  { }"),
        """\
prog.c:10:23: error: 'p' has no node -1 in this dimension; its nodes are numbered from 0 on
   10 | #pragma xmp task on p[-1]
      |                       ^~
prog.c:2:19: note: 'p' is declared here
    2 | #pragma xmp nodes p[*]
      |                   ^
""",
    ),
    "a node behind the last": (
        "#pragma xmp nodes q(2, 3)\n" + in_main("#pragma xmp task on q(1, 4)", "  { }"),
        """\
prog.c:11:26: error: 'q' has no node 4 in this dimension; its nodes are 1 to 3
   11 | #pragma xmp task on q(1, 4)
      |                          ^
prog.c:1:19: note: 'q' is declared here
    1 | #pragma xmp nodes q(2, 3)
      |                   ^
""",
    ),
    "a routine that there is not": (
        MAPPED + "#pragma acc routine(square) seq\n",
        """\
prog.c:9:21: error: there is no function 'square' before this directive
    9 | #pragma acc routine(square) seq
      |                     ^~~~~~
""",
    ),
    "a reduction of a loop's own index": (
        in_main("#pragma acc parallel loop reduction(+ : i)", "  for (int i = 0; i < N; i++) c[i] = i;"),
        """\
prog.c:10:41: error: 'i' is not declared
   10 | #pragma acc parallel loop reduction(+ : i)
      |                                         ^
""",
    ),
    "a reduction of the index of a loop around": (
        in_main(
            "  int i;", "#pragma acc parallel loop reduction(+ : i)", "  for (i = 0; i < N; i++) c[i] = i;"
        ),
        """\
prog.c:11:41: error: 'i' is the index of this loop and cannot be reduced
   11 | #pragma acc parallel loop reduction(+ : i)
      |                                         ^
""",
    ),
    "private and reduced": (
        in_main("  int s = 0;", "#pragma acc parallel private(s) reduction(+ : s)", "  s = N;"),
        """\
prog.c:11:47: error: 's' is in private and in reduction; keep one
   11 | #pragma acc parallel private(s) reduction(+ : s)
      |                                               ^
""",
    ),
    "a private pointer without a length": (
        MAPPED + "void f(double d[]) {\n#pragma acc parallel private(d)\n  d[0] = 1;\n}\n",
        """\
prog.c:10:30: error: the size of 'd' is not known here; write d[0:length]
   10 | #pragma acc parallel private(d)
      |                              ^
""",
    ),
    "an unknown type of device": (
        in_main("#pragma acc set device_type(gpu)"),
        """\
prog.c:10:17: error: unknown device type 'gpu'; there are *, default, host, multicore, not_host, nvidia, radeon
   10 | #pragma acc set device_type(gpu)
      |                 ^~~~~~~~~~~
""",  # noqa: E501
    ),
    "an atomic statement that C reads otherwise": (
        in_main(
            "  double s = 0;",
            "#pragma acc parallel loop copy(s)",
            "  for (int i = 0; i < N; i++) {",
            "#pragma acc atomic",
            "    s = s - c[i] + 1;",
            "  }",
        ),
        """\
prog.c:14:5: error: expected an atomic update in the form x++; x += value; x = x + value; or x = value + x;
   14 |     s = s - c[i] + 1;
      |     ^~~~~~~~~~~~~~~~~
""",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_where_it_is_and_what_was_expected(tmp_path: Path, name: str) -> None:
    source, errors = ERRORS[name]
    result = compiled(tmp_path, source)
    assert (result.status, result.errors, result.text) == (1, errors, "")


# Data clauses that contradict each other in one directive: the second clause, and the reason.
CONTRADICTING = {
    "data copyin(c[0:8]) copyout(c[4:8])": (
        "c[4:8]", "'c' is in the clauses copyin and copyout of one directive; name the same section in both, "
        "or sections that are apart"
    ),
    "data copyin(c) copyout(c[0:N])": (
        "c[0:N]", "'c' is in the clauses copyin and copyout of one directive; name the same section in both, "
        "or sections that are apart"
    ),
    "data present(c) copyout(c)": (
        "c)", "'c' is in the clauses present and copyout of one directive; keep one of both"
    ),
    "exit data copyout(c) delete(c)": (
        "c)", "'c' is in the clauses copyout and delete of one directive; keep one of both"
    ),
    "parallel deviceptr(k) copy(k)": (
        "k)", "'k' is in the clauses deviceptr and copy of one directive; keep one of both"
    ),
}  # fmt: skip


@pytest.mark.parametrize("directive", CONTRADICTING)
def test_data_clauses_that_contradict_each_other_are_refused(tmp_path: Path, directive: str) -> None:
    named, message = CONTRADICTING[directive]
    result = compiled(tmp_path, in_main("int *k = 0; (void)k;", f"#pragma acc {directive}", ";"))
    column = 13 + directive.rindex(named)
    assert result.status == 1
    assert result.errors.splitlines()[0] == f"prog.c:11:{column}: error: {message}"


# Directives of acc with a clause that the standard allows, but that is not implemented.
REFUSED = {
    "enter data attach(c)": "attach not supported yet; name what the pointer leads to in a data clause",
    "exit data detach(c)": "detach not supported yet; name what the pointer leads to in a data clause",
    "update host(c) device_type(nvidia)": (
        "device_type not supported yet; write the clauses that every device shall have"
    ),
    "update host(c) dtype(*)": "dtype not supported yet; write the clauses that every device shall have",
    "declare device_resident(c)": "device_resident not supported yet; write create",
    "declare link(c)": "link not supported yet; write create, or copyin where it is used",
    "declare create(zero: c)": "the modifier zero of acc declare is not supported; set zeros in a loop",
    "routine bind(main)": "bind not supported yet; call the other function",
}


@pytest.mark.parametrize("directive", REFUSED)
def test_a_clause_that_is_not_built_is_refused(tmp_path: Path, directive: str) -> None:
    result = compiled(tmp_path, in_main(f"#pragma acc {directive}"))
    clause = directive.removesuffix(directive[directive.rindex("(") :]).split()[-1]
    column = 13 + directive.index(clause)
    assert result.status == 1
    assert result.errors.splitlines()[0] == f"prog.c:10:{column}: error: {REFUSED[directive]}"


def test_every_clause_is_honoured_a_hint_or_refused() -> None:
    known = {clause for construct in grammar_acc.GRAMMAR.values() for clause in construct.allowed}
    kinds = [clause_rules.HONOURED, clause_rules.HINTS, frozenset(clause_rules.REFUSED)]
    assert sorted(known) == sorted(clause for kind in kinds for clause in kind)


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


def test_consequences_of_a_refused_directive_are_not_shown(tmp_path: Path) -> None:
    """Without its distribution a template has no arrays, and without alignment an array has no shadow."""
    source = in_main(
        "#pragma xmp reflect (a)",
        "#pragma xmp loop (i) on t[i][*]",
        "  for (int i = 0; i < N; i++) a[i][0] = 0;",
        "#pragma xmp barrier on q",
    ).replace("onto p", "onto nowhere")
    errors = compiled(tmp_path, source).errors
    assert [line for line in errors.splitlines() if ": error: " in line] == [
        "prog.c:4:41: error: there is no node array 'nowhere'; declare it with '#pragma xmp nodes'",
        "prog.c:13:24: error: there are no nodes and no template 'q'",
    ]


def test_a_misspelt_directive_causes_no_errors_of_c(tmp_path: Path) -> None:
    """Sections are not C: without their directive, the C parser would see them."""
    source = in_main("  nothing = 1;", "#pragma xmp gmov", "  a[0:2][0] = b[2:2][0];")
    errors = compiled(tmp_path, source).errors
    assert [line.split(": ")[0] for line in errors.splitlines() if ": error: " in line] == [
        "prog.c:10:3", "prog.c:11:13",
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


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("int y = x[0]:[1];", "4:5: error: expected a transfer of a coarray as a statement, which begins "
         "with the name of a variable, found 'int' before 'y'; declare a variable first, and assign to it"),
        ("t.v = x[0]:[1];", "found '.' before 'v'"),
        ("*p = x[0]:[1];", "found '*' before 'p'"),
        ("s[0] = 1, s[1] = x[0]:[1];", "found ',' before 's'"),
        ("int z = s[0], x[0]:[1] = z;", "found ',' before 'x'"),
    ],
)  # fmt: skip
def test_a_transfer_is_a_statement_of_its_own(tmp_path: Path, statement: str, error: str) -> None:
    """What surrounds it would go with it, and libclang would then miss a variable of this name."""
    source = f"int x[4]:[*], s[4], *p;\nstruct {{ int v; }} t;\nint main(void) {{\n{statement}\n}}\n"
    result = compiled(tmp_path, source)
    assert result.status == 1
    assert error in result.errors
    assert result.errors.count(": error: ") == 1


def test_a_coarray_of_the_gpus_memory_is_refused_with_another_openacc_compiler(tmp_path: Path) -> None:
    source = (
        "int x[4]:[*], s[4];\nint main(void) {\n#pragma acc host_data use_device(x, s)\n"
        "  { s[:] = x[0:4]:[1]; }\n}\n"
    )
    result = compiled(tmp_path, source, "--openacc-backend=gcc", "--emit")
    assert result.status == 1
    assert (
        result.errors
        == """\
prog.c:4:12: error: a transfer of coarray 'x' between memories of GPUs is not supported with another OpenACC \
compiler; update 'x' on the host, and transfer that
    4 |   { s[:] = x[0:4]:[1]; }
      |            ^~~~~~~~~~
prog.c:3:34: note: 'x' is the GPU's here
    3 | #pragma acc host_data use_device(x, s)
      |                                  ^
"""
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ["--openacc-backend=none-such", "-c"],
            "the C compiler 'none-such' cannot be run: No such file or directory; install it, or name another"
            " by CC or --openacc-backend",
        ),
        (["-c", "-o", "."], ".: Is a directory"),
    ],
)
def test_a_compiler_or_file_that_fails_is_one_line(tmp_path: Path, options: list[str], error: str) -> None:
    result = compiled(tmp_path, "int main(void) { return 0; }\n", *options)
    assert (result.status, result.errors) == (1, f"peerway cc: error: {error}\n")


def test_quotes_that_are_not_closed_are_an_error_with_their_setting() -> None:
    with pytest.raises(BadCommand, match="CC is 'gcc \"-O2', in which a quotation is not closed"):
        read(["prog.c"], {"CC": 'gcc "-O2'})
    with pytest.raises(BadCommand, match="--openacc-backend is 'gcc \"', in which"):
        read(['--openacc-backend=gcc "', "prog.c"], {})


def test_a_sum_of_thousands_of_terms_is_compiled(tmp_path: Path) -> None:
    terms = " + ".join(["a[0][0]"] * 3000)
    result = compiled(tmp_path, in_main(f"  c[0] = {terms};"))
    assert (result.status, result.errors) == (0, "")
    assert result.text.count("a[PWX_IN(a, 0, 0)][0]") == 3000


OF_ANOTHER_COMPILER = {
    "gmove in of other nodes' GPUs": (
        in_main("#pragma xmp gmove in acc(b)", "  a[0][:] = b[1][:];"),
        "prog.c:10:13: error: gmove in with acc of 'b' is not supported with another OpenACC compiler; "
        "update 'b' on the host, and move that\n",
    ),
    "a pointer to shared rows": (
        MAPPED + "static double (*q)[N];\n#pragma xmp align q[*][i] with t[i][*]\nvoid f(void) {\n"
        "#pragma acc parallel loop copy(q)\n  for (int i = 0; i < N; i++) q[0][i] = 1;\n}\n",
        "prog.c:12:32: error: 'q' is a pointer to a distributed dimension, which is not supported with "
        "another OpenACC compiler\n",
    ),
    "update of a part of a distributed array": (
        in_main("#pragma acc update host(a[0:2])"),
        "prog.c:10:25: error: update of a section of distributed array 'a' is not supported with another "
        "OpenACC compiler; name all of 'a'\n",
    ),
}


@pytest.mark.parametrize("name", OF_ANOTHER_COMPILER)
def test_features_that_another_compiler_lacks_are_refused(tmp_path: Path, name: str) -> None:
    source, error = OF_ANOTHER_COMPILER[name]
    result = compiled(tmp_path, source, "--openacc-backend=gcc", "--emit")
    assert result.status == 1
    assert result.errors.startswith(error)


def test_clauses_that_are_refused_may_stay_for_another_compiler(tmp_path: Path) -> None:
    source = in_main("#pragma acc update host(c) device_type(nvidia)")
    result = compiled(tmp_path, source, "--openacc-backend=gcc", "--emit")
    assert (result.status, result.errors) == (0, "")
    assert "#pragma acc update host(c) device_type(nvidia)\n" in result.text


def test_rows_of_the_file_cannot_be_declared(tmp_path: Path) -> None:
    done = compiled(tmp_path, "double **rows;\n#pragma acc declare create(rows[0:4][0:4])\n")
    assert done.status == 1
    assert (
        "prog.c:2:13: error: acc declare outside functions names rows, whose pointers are not set"
        in done.errors
    )


POINTER = """\
#include <xmp.h>
#pragma xmp nodes p[*]
#pragma xmp template t[16]
#pragma xmp distribute t[block] onto p
int *a;
#pragma xmp align a[i] with t[i]
int main(void) {
  a = xmp_malloc(xmp_desc_of(a), 16);
  const unsigned long size = sizeof *a;
  return a == 0 ? 1 : USE + (size != 4);
}
"""


@pytest.mark.parametrize("written", ["*a", "*(a + 3)", "a[3]"])
def test_an_element_of_a_distributed_pointer_has_a_subscript(tmp_path: Path, written: str) -> None:
    done = compiled(tmp_path, POINTER.replace("USE", written))
    refused = "error: an element of distributed array 'a' is written 'a[i]', without '*'" in done.errors
    assert (done.status, refused) == ((0, False) if written == "a[3]" else (1, True))


STRUCT = """\
struct { int v[16], k; } s;
#pragma xmp nodes p[*]
#pragma xmp template t[16]
#pragma xmp distribute t[block] onto p
#pragma xmp align s.v[i] with t[i]
int main(void) {
#pragma xmp loop on t[i]
  for (int i = 0; i < 16; i++) USE[i] = s.v[i];
}
"""


@pytest.mark.parametrize("written", ["(s).v", "((s)).v"])
def test_brackets_that_hide_a_distributed_member_are_refused(tmp_path: Path, written: str) -> None:
    done = compiled(tmp_path, STRUCT.replace("USE", written))
    assert done.status == 1
    assert "prog.c:8:" in done.errors
    assert "error: brackets or a macro hide this use of 's.v'; write 's.v[...]'" in done.errors


def test_brackets_around_a_distributed_member_hide_nothing(tmp_path: Path) -> None:
    done = compiled(tmp_path, STRUCT.replace("USE", "(s.v)"))
    assert "(s__v)[i - s__v__b0] = s__v[i - s__v__b0];" in done.text
