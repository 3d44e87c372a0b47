"""Warnings about mistakes that compile: subscripts beyond the shadow, undistributed loops, lost sums.

If the program may be right, there is no warning.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import compiled, in_main

LOOP = "#pragma xmp loop on t[i{added}][*]\n  for (int i = 2; i < N - 2; i++) b[i{added}][0] = {read};"


def errors_of(folder: Path, read: str, added: str = "") -> str:
    done = compiled(folder, in_main(*LOOP.format(read=read, added=added).splitlines()))
    assert done.status == 0
    return done.errors


@pytest.mark.parametrize(
    ("read", "added", "warning"),
    [
        ("a[i-2][0]", "", "'a[i-2]' reaches 2 below what a node computes of this loop, and the shadow of "),
        ("a[i+2][0]", "", "'a[i+2]' reaches 2 above what a node computes of this loop, and the shadow of "),
        ("b[i + 1][0]", "", "dimension 0 has none there: on several nodes this is no element of 'b'"),
        ("a[i-1][0]", "+1", "'a[i-1]' reaches 2 below"),
    ],
)
def test_a_subscript_beyond_the_shadow_is_a_warning(
    read: str, added: str, warning: str, tmp_path: Path
) -> None:
    errors = errors_of(tmp_path, read, added)
    assert "prog.c:11:" in errors
    assert "warning: " in errors
    assert warning in errors
    assert errors.count("warning") == 1


@pytest.mark.parametrize(
    ("read", "added"),
    [
        ("a[i-1][0] + a[i][1] + a[i+1][3]", ""),
        ("a[i][0] + a[i+2][0]", "+1"),
        ("a[i][i+7]", ""),  # the dimension is not distributed
        ("c[i+5]", ""),  # the array is not aligned
        ("a[i*i][0] + a[N-1-i][0]", ""),  # known only at run time
    ],
)
def test_a_subscript_in_memory_or_unknown_gives_no_warning(read: str, added: str, tmp_path: Path) -> None:
    assert errors_of(tmp_path, read, added) == ""


SUM = [
    "double sum = 0;",
    "#pragma xmp loop on t[i][*]{clause}",
    "for (int i = 0; i < N; i++) sum += a[i][0];",
]


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        (["for (int i = 0; i < N; i++) a[i][0] = 1;"], "this loop goes over all of 'a', of which a node has"),
        (["int i;", "for (i = N - 2; i >= 1; i--) b[i][0] = 1;"], "this loop goes over all of 'b'"),
        (["#pragma xmp loop on t[i][*]", "for (int i = 0; i <= N; i++) a[i][0] = 1;"],
         "this loop goes over 0 to 16 of template 't', which has 0 to 15"),
        (["#pragma xmp loop on t[i-1][*]", "for (int i = 0; i < N; i++) c[i] = 1;"], "goes over -1 to 14 of"),
        (["for (int i = N - 3; i != -1; i--) a[i][0] = 1;"], "this loop goes over all of 'a'"),
        ([row.format(clause="") for row in SUM], "each node adds to its own 'sum' in this distributed loop"),
        (["#pragma xmp reflect (b) width(1:1, 0)", "#pragma xmp barrier",
          "#pragma xmp reflect (b) width(0, 1:1)"],
         "the corners of the shadow of 'b' stay as they are"),
    ],
)  # fmt: skip
def test_a_common_mistake_is_a_warning(lines: list[str], warning: str, tmp_path: Path) -> None:
    done = compiled(tmp_path, _wide(in_main(*lines)))
    assert done.status == 0
    assert "warning: " in done.errors
    assert warning in done.errors
    assert done.errors.count("warning: ") == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["#pragma xmp loop on t[i][*]", "for (int i = 0; i < N; i++) a[i][0] = 1;"],
        ["for (int j = 0; j < N; j++) c[j] = 1;"],  # not distributed
        # the condition may check who owns the element
        ["for (int i = 0; i < N; i++) if (c[i] > 0) a[i][0] = 1;"],
        ["#pragma xmp task on p[0]", "for (int i = 0; i < N; i++) a[i][0] = 1;"],
        ["for (int i = 4; i < 8; i++) a[i][0] = 1;"],
        ["for (int i = N - 4; i != -1; i--) a[i][0] = 1;"],
        [line.format(clause=" reduction(+:sum)") for line in SUM],
        [*(line.format(clause="") for line in SUM), "#pragma xmp reduction (+:sum)"],
        ["#pragma xmp loop on t[i][*]", "for (int i = 0; i < N; i++) { double s = 0; s += i; a[i][0] = s; }"],
        [
            "double s;",
            "#pragma xmp loop on t[i][*]",
            "for (int i = 0; i < N; i++) { s = 0; s += i; a[i][0] = s; }",
        ],
        [
            "#pragma xmp reflect (b) width(1:1, 0) orthogonal",
            "#pragma xmp reflect (b) width(0, 1:1) orthogonal",
        ],
        ["#pragma xmp reflect (b) width(1:1, 0)", "#pragma xmp reflect (b) width(1:1, 1:1)"],
    ],
)
def test_code_that_may_be_right_gives_no_warning(lines: list[str], tmp_path: Path) -> None:
    done = compiled(tmp_path, _wide(in_main(*lines)))
    assert (done.status, done.errors) == (0, "")


def _wide(source: str) -> str:
    """Give `b` a shadow in both dimensions."""
    return source.replace("int main", "#pragma xmp shadow b[1][1]\nint main")


CROSSED = """\
#define N 8
#pragma xmp nodes p[{nodes}]
#pragma xmp template t[N][N]
#pragma xmp distribute t[block][block] onto p
static int a[N][N], b[N][N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align b[i][j] with t[i][j]
#pragma xmp shadow b[*][*]
int main(void) {{
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {written}
}}
"""


@pytest.mark.parametrize(
    ("nodes", "written", "subscripts"),
    [
        ("2][2", "a[j][i] = 1;", ["a[j]", "a[i]"]),
        ("2][2", "a[i][i + 1] = 1;", ["a[i + 1]"]),
        ("2][2", "a[i][j] = b[j][i];", []),  # with a full shadow, each node may have all elements
        ("2][1", "a[j][i] = 1;", ["a[j]"]),
    ],
)
def test_an_index_of_another_dimension_is_a_warning(
    tmp_path: Path, nodes: str, written: str, subscripts: list[str]
) -> None:
    done = compiled(tmp_path, CROSSED.format(nodes=nodes, written=written))
    assert done.status == 0
    assert done.errors.count("warning: ") == len(subscripts)
    for subscript in subscripts:
        assert f"the loop over this index of '{subscript}' goes over another dimension" in done.errors
