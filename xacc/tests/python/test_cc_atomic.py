"""The call of the kernels' prelude that each form of an acc atomic statement becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import compiled

from peerway_xacc.codegen.atomic import call_of

OF_X = "decltype(pwx_atomic_read(x))"
ADDED = f"pwx_atomic(pwx_sum{{}}, x, {OF_X}((e)))"


@pytest.mark.parametrize(
    ("kind", "written", "call"),
    [
        ("update", "x += e;", f"{ADDED};"),
        ("update", "x = x + e;", f"{ADDED};"),
        ("update", "x = e + x;", f"{ADDED};"),
        ("update", "x -= e;", f"pwx_atomic(pwx_sum{{}}, x, {OF_X}(-(e)));"),
        ("update", "x++;", f"pwx_atomic(pwx_sum{{}}, x, {OF_X}((1)));"),
        ("update", "--x;", f"pwx_atomic(pwx_sum{{}}, x, {OF_X}(-(1)));"),
        ("update", "x /= e;", f"pwx_atomic_update(x, [&](auto x__v) {{ return {OF_X}(x__v / (e)); }});"),
        ("read", "v = x;", "v = pwx_atomic_read(x);"),
        ("write", "x = e;", f"pwx_atomic_write(x, {OF_X}(e));"),
        ("capture", "v = x++;", f"v = pwx_atomic(pwx_sum{{}}, x, {OF_X}((1)));"),
        ("capture", "v = x += e;", f"v = {OF_X}({ADDED} + (e));"),
        ("capture", "{ v = x; x += e; }", f"v = {ADDED};"),
        ("capture", "{ x += e; v = x; }", f"v = {OF_X}({ADDED} + (e));"),
        (
            "capture",
            "{ v = x; x = e; }",
            f"v = pwx_atomic_update(x, [&](auto) {{ return {OF_X}(e); }});",
        ),
        ("capture", "{ v = x; x = v + 1; }", None),
        ("capture", "{ v = x; x = f(x); }", None),
        ("capture", "{ v = x; y = e; }", None),
        ("update", "x = e - x;", f"pwx_atomic_update(x, [&](auto x__v) {{ return {OF_X}((e) - x__v); }});"),
        ("update", "x = e << x;", f"pwx_atomic_update(x, [&](auto x__v) {{ return {OF_X}((e) << x__v); }});"),
        (
            "update",
            "x = a + b * -c - x;",
            (f"pwx_atomic_update(x, [&](auto x__v) {{ return {OF_X}((a + b * -c) - x__v); }});"),
        ),
        (
            "capture",
            "v = x = e / x;",
            (f"v = {OF_X}((e) / pwx_atomic_update(x, [&](auto x__v) {{ return {OF_X}((e) / x__v); }}));"),
        ),
        (
            "capture",
            "{ v = x; (x)--; }",
            f"v = pwx_atomic(pwx_sum{{}}, (x), {OF_X.replace('(x)', '((x))')}(-(1)));",
        ),
        ("update", "x = a - b * x;", None),
        ("update", "x = x - a + b;", None),
        ("update", "x = x * a + b;", None),
        ("update", "x = a ? b : c + x;", None),
        ("update", "f(x);", None),
        ("capture", "{ v = y; x += e; }", None),
    ],
)
def test_each_form_of_an_atomic_statement(kind: str, written: str, call: str | None) -> None:
    assert call_of(kind, written) == call


def test_elements_of_distributed_arrays(tmp_path: Path) -> None:
    """Their subscripts become those of the node's memory, in each kind of statement."""
    source = """\
#include <xmp.h>
#pragma xmp nodes p[*]
#pragma xmp template t[16]
#pragma xmp distribute t[block] onto p
static int a[16], b[16];
#pragma xmp align a[i] with t[i]
#pragma xmp align b[i] with t[i]
int main(void) {
#pragma xmp loop on t[i]
#pragma acc parallel loop
  for (int i = 0; i < 16; i++) {
    int value;
#pragma acc atomic
    a[i] += b[i];
#pragma acc atomic read
    value = a[i];
#pragma acc atomic write
    b[i] = value;
#pragma acc atomic capture
    {
      value = b[i];
      b[i]++;
    }
  }
}
"""
    result = compiled(tmp_path, source)
    assert result.status == 0, result.errors
    a, b = "a[i - a__b0]", "b[i - b__b0]"
    for statement in (
        f"pwx_atomic(pwx_sum{{}}, {a}, decltype(pwx_atomic_read({a}))(({b})));",
        f"value = pwx_atomic_read({a});",
        f"pwx_atomic_write({b}, decltype(pwx_atomic_read({b}))(value));",
        f"value = pwx_atomic(pwx_sum{{}}, {b}, decltype(pwx_atomic_read({b}))((1)));",
    ):
        assert statement in result.text
