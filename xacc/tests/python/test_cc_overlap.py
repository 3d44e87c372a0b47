"""Which kernels `peerway cc` lets run beside a reflect, and which of their iterations wait for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cc_programs import compiled

HEAD = """\
#include <math.h>
#include <xmp.h>
#define N 16
#define AHEAD(i) ((i) + 1)
#pragma xmp nodes p[2][2]
#pragma xmp template t[N][N]
#pragma xmp distribute t[block][block] onto p
#pragma xmp nodes line[4]
#pragma xmp template ct[N]
#pragma xmp distribute ct[cyclic] onto line
static double a[N][N], b[N][N], whole[N][N], table[N], *elsewhere;
static double c[N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp align c[i] with ct[i]
#pragma xmp align whole[i][*] with t[i][*]
#pragma xmp shadow a[2][2]
#pragma xmp shadow b[2][2]
#pragma xmp shadow whole[1][0]
struct pointing { double *at; };
static struct pointing view;
static long number;
#define AT_NUMBER(j) (((double *)number)[j])
static int away = 1;
static double half(double value) { return value / 2; }
"""
# The body of a loop over i and j, and how far its kernel reaches; None: it waits for all work before it.
BODIES = [
    ("a[i][j] = 1;", {}),
    ("b[i][j] = a[i - 1][j];", {"i": 1}),
    ("b[i][j] = a[i][j + 2] + a[i + 1][j];", {"i": 1, "j": 2}),
    ("b[i + 1][j] = a[i][j];", {"i": 1}),
    ("const int above = i - 1; b[i][j] = a[above][j];", {"i": 1}),
    ("const int above = i - 1, two = above - 1; b[i][j] = a[two][j];", {"i": 2}),
    ("b[i][j] = half(a[i - 1][j]) + sqrt(table[j]);", {"i": 1}),
    ("b[i][j] = whole[i - 1][(j + 1) % N];", {"i": 1}),
    ("for (int k = 0; k < N; k++) b[i][j] += whole[i + 1][k];", {"i": 1}),
    ("b[i][j] = a[AHEAD(i)][j];", None),  # the values of a macro with arguments are not known
    ("b[i][j] = a[j][i];", None),  # not the dimension that the loop goes over
    ("b[i][j] = a[i][(j + 1) % N];", None),
    ("for (int k = -1; k < 2; k++) b[i][j] += a[i + k][j];", None),
    ("int k = i; k++; b[i][j] = a[k][j];", None),
    ("b[i][j] = a[0][j];", None),
    ("const double *row = whole[i]; b[i][j] = row[j];", None),
    ("const double *at = &a[i][j]; b[i][j] = at[1];", None),
    ("b[i][j] = elsewhere[j];", None),
    ("b[i][j] = view.at[j];", None),
    ("b[i][j] = ((double *)number)[j];", None),
    ("b[i][j] = AT_NUMBER(j);", None),
    ("double *at = view.at; b[i][j] = at[j];", None),
    ("b[i][j] = a[i + away][j];", None),  # a directive may change it
    ("b[i][j] = a[i + 1][j] + away;", {"i": 1}),
]


def kernel_of(tmp_path: Path, directives: str, loop: str) -> str:
    source = f"{HEAD}int main(void) {{\n{directives}\n{loop}\n  return 0;\n}}\n"
    result = compiled(tmp_path, source)
    assert result.status == 0, result.errors
    return result.text


def reach_of(text: str) -> dict[str, int] | None:
    """How far the kernel in a generated text reaches, by the loop's index; None if it does not overlap."""
    begins = re.findall(r"^ *\"  pwx_begin(_in_order)?\(", text, re.MULTILINE)
    assert len(begins) == 1
    if begins[0]:
        return None
    return {index: int(reach) for index, reach in re.findall(r"pwx_near_end\((\w)__at, [^,]+, (\d+)\)", text)}


@pytest.mark.parametrize(("body", "reach"), BODIES)
def test_a_kernel_waits_where_it_may_read_halos(
    body: str, reach: dict[str, int] | None, tmp_path: Path
) -> None:
    directives = "#pragma xmp loop on t[i][j]\n#pragma acc parallel loop collapse(2)"
    loop = f"  for (int i = 2; i < N - 2; i++)\n    for (int j = 2; j < N - 2; j++) {{ {body} }}"
    assert reach_of(kernel_of(tmp_path, directives, loop)) == reach


@pytest.mark.parametrize(
    ("directives", "loop", "reach"),
    [
        (
            "#pragma xmp loop on ct[i]\n#pragma acc parallel loop",
            "  for (int i = 0; i < N; i++) c[i] = 1;",
            None,
        ),
        (
            "#pragma xmp loop on t[i][*]\n#pragma acc parallel loop",
            "  for (int i = 1; i < N; i++) whole[i][0] = whole[i - 1][1];",
            {"i": 1},
        ),
        (
            "#pragma xmp loop on t[i - 1][*]\n#pragma acc parallel loop",
            "  for (int i = 1; i < N; i++) whole[i - 1][0] = whole[i][1];",
            {"i": 1},
        ),
        (
            "#pragma acc parallel loop",
            "  for (int i = 0; i < N; i++) table[i] = 1;",
            {},
        ),
    ],
)
def test_it_overlaps_only_with_loops_that_it_follows(
    directives: str, loop: str, reach: dict[str, int] | None, tmp_path: Path
) -> None:
    assert reach_of(kernel_of(tmp_path, directives, loop)) == reach


def test_a_kernel_says_which_arrays_a_reflect_must_not_have(tmp_path: Path) -> None:
    directives = "#pragma xmp loop on t[i][j]\n#pragma acc parallel loop collapse(2)"
    loop = "  for (int i = 1; i < N; i++)\n    for (int j = 1; j < N; j++) b[i][j] = a[i - 1][j] + table[j];"
    text = kernel_of(tmp_path, directives, loop)
    [kernel] = re.findall(r"static pwx_kernel (\w+) =", text)
    [apart] = re.findall(r"0, 0, \(const int\[\]\)\{([\d, ]+), -1\}, 0\};", text)
    [arguments] = re.findall(rf"void \*{kernel}__a\[\] = {{(.*?)}};", text)
    all_arguments = arguments.split(", ")
    named = {all_arguments[int(number)] for number in apart.split(", ")}
    assert named == {"(void *)&b__d", "(void *)&table__d"}


def test_the_addresses_of_halos_are_not_known_before_the_wait(tmp_path: Path) -> None:
    """NVIDIA's assembler moves read-only loads before a wait that they do not depend on."""
    directives = "#pragma xmp loop on t[i][j]\n#pragma acc parallel loop collapse(2)"
    loop = "  for (int i = 1; i < N; i++)\n    for (int j = 1; j < N; j++) b[i][j] = a[i - 1][j];"
    text = kernel_of(tmp_path, directives, loop)
    before, wait, after = text.partition("pwx_zero = pwx_wait_for_halos(pwx_overlaps);")
    assert wait
    assert "const int i = (int)(i__first + (long)(i__at + pwx_zero));" in after
    assert "const int i = " not in before.partition("pwx_begin(")[2]
