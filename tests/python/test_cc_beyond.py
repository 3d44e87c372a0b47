"""Subscripts that reach beyond the shadow: a warning, and none where a node has the element."""

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
    ("read", "added", "said"),
    [
        ("a[i-2][0]", "", "'a[i-2]' reaches 2 below what a node computes of this loop, and the shadow of "),
        ("a[i+2][0]", "", "'a[i+2]' reaches 2 above what a node computes of this loop, and the shadow of "),
        ("b[i + 1][0]", "", "dimension 0 has none there: on several nodes this is no element of 'b'"),
        ("a[i-1][0]", "+1", "'a[i-1]' reaches 2 below"),
    ],
)
def test_what_no_node_has_is_a_warning(read: str, added: str, said: str, tmp_path: Path) -> None:
    errors = errors_of(tmp_path, read, added)
    assert "prog.c:11:" in errors
    assert "warning: " in errors
    assert said in errors
    assert errors.count("warning") == 1


@pytest.mark.parametrize(
    ("read", "added"),
    [
        ("a[i-1][0] + a[i][1] + a[i+1][3]", ""),
        ("a[i][0] + a[i+2][0]", "+1"),
        ("a[i][i+7]", ""),  # of a dimension that is not distributed
        ("c[i+5]", ""),  # of an array that is not aligned
        ("a[i*i][0] + a[N-1-i][0]", ""),  # known when the program runs
    ],
)
def test_what_a_node_has_or_nobody_can_say_is_none(read: str, added: str, tmp_path: Path) -> None:
    assert errors_of(tmp_path, read, added) == ""
