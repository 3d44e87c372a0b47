"""Which headers of loops are counts: their bounds and steps."""

from __future__ import annotations

import pytest

from peerway_xacc.analysis.loop_header import header
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import Text


def read(inside: str) -> tuple[str, str, str, bool]:
    """The relation, the last value, the step and whether it is subtracted."""
    text = Text("prog.c", f"for ({inside}) ;")
    found = header(text, 0, len(text.text))
    return found.relation, text.text[found.last.start : found.last.end], found.step, found.down


@pytest.mark.parametrize(
    ("inside", "counts"),
    [
        ("i = 0; i < n; i++", ("<", "n", "1", False)),
        ("i = 0; n + 1 > i; i += 2 * s", ("<", "n + 1", "2 * s", False)),
        ("i = n; i >= -1; i -= s", (">=", "-1", "s", True)),
        ("i = 0; i < (a && b); i = i + s - 1", ("<", "(a && b)", "s - 1", False)),
        ("i = 0; i < f(a, b)[c | d]; i = s << 1 ? 1 : 2", None),
        ("i = 0; i < a << 2; i = s + i", ("<", "a << 2", "s", False)),
        ("i = n; i != *p; i = i - s * 2", ("!=", "*p", "s * 2", True)),
        ("i = 0; i < n; i += a ? 1 : 2", ("<", "n", "a ? 1 : 2", False)),
    ],
)
def test_a_header_that_counts(inside: str, counts: tuple[str, str, str, bool] | None) -> None:
    if counts is None:
        with pytest.raises(Refused):
            read(inside)
    else:
        assert read(inside) == counts


@pytest.mark.parametrize(
    "inside",
    [
        "i = 0; i < n && more; i++",
        "i = 0; more || n > i; i++",
        "i = 0; i < n == 1; i++",
        "i = 0; i < n & mask; i++",
        "i = 0; i < a ? b : c; i++",
        "i = 0; i < n, more; i++",
        "i = 0; a < n > i; i++",
        "i = 0; i < n; i += 2, j++",
        "i = n; i > 0; i = i - s + 1",
        "i = 0; i < n; i = i + s << 1",
        "i = 0; i < n; i = a & s + i",
        "i = 0; i < n; i++, j++",
        "i = 0; i < n; i += i",
        "i = 0; i < n; i += s = 2",
        "i = 0; i < n; i = i + s - i",
        "i = 0; i < n * i; i++",
        "i = 0; i < n++; i++",
    ],
)
def test_what_only_begins_like_a_count_is_refused(inside: str) -> None:
    with pytest.raises(Refused, match="expected"):
        read(inside)
