"""Which loops of the host `peerway cc` writes for the GPU, and what it says of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from cc_programs import compiled

HEAD = """\
#include <math.h>
#include <stdio.h>
#include <xmp.h>
#define N 16
#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p
static double a[N], plain[4];
#pragma xmp align a[i] with t[i]
#pragma xmp shadow a[1]
static double outer;
static volatile int stopped;
double elsewhere(double value);
static double sum_of(void) {
  double sum = 0;
#pragma xmp loop on t[i] reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(a)
  for (int i = 0; i < N; i++) sum += a[i];
  return sum;
}
static double twice(double value) {
  if (value > 1) return 1;
  return 2 * sum_of();
}
static double endless(double value) { return endless(value + sum_of()); }
static void keep(double* value) { *value = 1; }
"""
COMPUTE = """\
#pragma xmp loop on t[i]
#pragma acc parallel loop present(a)
    for (int i = 0; i < N; i++) a[i] = a[i] + s;
"""
COUNTED = [
    f"for (int n = 0; n < 9; n++) {{\n{COMPUTE}    s = s / sum_of();\n  }}",
    f"for (long n = limit; n >= limit / 4; n -= 2) {{\n{COMPUTE}    s = s * n;\n  }}",
    f"for (int n = 1; n < limit; n *= 2) {{\n{COMPUTE}  }}",
]
RUNS = [
    f"for (int n = 0; n < limit; n++) {{\n{COMPUTE}    limit -= 1;\n  }}",
    f"for (int n = 0; n < 9; n++) {{\n{COMPUTE}    n += 1;\n  }}",
    f"for (int n = 0; n < pointed; n++) {{\n{COMPUTE}  }}",
    f"for (int n = 0; n < 9 && !stopped; n++) {{\n{COMPUTE}  }}",
    f"for (int n = 0; n++ < 9;) {{\n{COMPUTE}  }}",
    f"for (int n = 0; n < 9 && s < 5; n++) {{\n{COMPUTE}    s = s / sum_of();\n  }}",
    f"for (int n = 0; n < 9; n++) {{\n    s = s * sum_of();\n    if (s > 5) break;\n{COMPUTE}  }}",
    f"for (int n = 0; n < 9; n++) {{\n{COMPUTE}    if (sqrt(s) > 5) return n;\n  }}",
    f"while (s < 9) {{\n{COMPUTE}    s *= 2;\n  }}",
    f"for (;;) {{\n{COMPUTE}    if ((s *= 2) > 9) break;\n  }}",
    f"while (s < 9) {{ /* in braces */ {{\n{COMPUTE}    }}\n    if (s > 1) s *= 2; else s += 1;\n  }}",
]
STAYS = [
    ('printf("%g", s);', "'printf' may give other bits on a GPU"),
    ("s = elsewhere(s);", "it calls 'elsewhere', whose text is elsewhere"),
    ("s = sin(s);", "'sin' may give other bits on a GPU"),
    ("keep(&s);", "the address of 's' is taken"),
    ("outer = s;", "'outer' outlives the function"),
    ("static int count; count++;", "'count' outlives the function"),
    ("volatile int count = 0; count++;", "'count' is volatile"),
    ("plain[0] = s;", "'plain' outlives the function"),
    ("s = plain[0];", "the host uses 'plain'"),
    ("s = twice(s);", "of 'twice': it does not return one number, at its end"),
    ("s = endless(s);", "of 'endless': 'endless' calls itself"),
    ("s = n > 3 ? sum_of() : 1;", "a call is in only one branch of an expression"),
    ("if (n > 3) s = sum_of();", "a 'if' with loops or calls is in it"),
    ("if (n > 3) continue;", "a 'continue' is in it"),
    ("if (s > 3) break;\n    if (s > 5) return 1;", "a second test leaves it"),
    ("#pragma xmp barrier", "'xmp barrier' is in it"),
    ("#pragma xmp reflect(a)", "a reflect without acc is in it"),
    ("#pragma xmp reflect(a) acc async(1)", "a split or asynchronous reflect is in it"),
    ("#pragma acc update host(a)\n    ;", "'acc update' is in it"),
    (
        "#pragma acc parallel loop async(1) present(a)\n    for (int i = 0; i < 1; i++) a[i] = 0;",
        "an acc loop with async is in it",
    ),
    (
        "#pragma acc parallel loop\n    for (int i = 0; i < n; i++) plain[i % 4] = 0;",
        "a loop's bounds need 'n'",
    ),
    (
        "#pragma acc parallel loop num_gangs(n + 1)\n    for (int i = 0; i < 4; i++) plain[i] = 0;",
        "a directive needs 'n' on the host",
    ),
    (
        "#pragma acc parallel loop\n    for (int i = 0; i < 4; i++)\n#if 1\n plain[i] = 0;\n#endif",
        "a line of the preprocessor is in it",
    ),
    ("s += 1;", "its condition needs 's', written after the test"),
    ("s += n;", "its condition changes 'n', used after the test"),
]


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What --explain says of each loop: all are in one program, each in a function of its own."""
    loops = {text: text for text in [*COUNTED, *RUNS]}
    for inside, _ in STAYS:
        condition = {"s += 1;": "n < s", "s += n;": "n++ < 9"}.get(inside, "n < 9")
        test = "    if (s > 50) break;\n" if condition != "n < 9" else ""
        loops[inside] = f"for (int n = 0; {condition}; n++) {{\n{COMPUTE}{test}    {inside}\n  }}"
    source, lines = HEAD, {}
    for number, (key, loop) in enumerate(loops.items()):
        source += f"static int loop{number}(void) {{\n  double s = 1;\n"
        source += "  int limit = 9, pointed = 9, *bound = &pointed;\n  "
        lines[f"prog.c:{source.count(chr(10)) + 1}"] = key
        source += f"{loop}\n  return (int)s;\n}}\n"
    calls = " + ".join(f"loop{number}()" for number in range(len(loops)))
    source += f"int main(void) {{ return {calls}; }}\n"
    result = compiled(tmp_path_factory.mktemp("loops"), source, "--explain", "-c")
    assert result.status == 0, result.errors
    texts = [line.partition(": ") for line in (result.text + result.errors).splitlines()]
    return {lines[place]: text for place, _, text in texts if place in lines and "the loop " in text}


@pytest.mark.parametrize("loop", COUNTED)
def test_a_loop_that_the_host_can_count(loop: str, explained: dict[str, str]) -> None:
    assert explained[loop].startswith(
        "the loop runs on the GPU, as CUDA graphs of many iterations (on AMD GPUs the host"
    )


@pytest.mark.parametrize("loop", RUNS)
def test_a_loop_whose_scalars_can_live_on_the_gpu(loop: str, explained: dict[str, str]) -> None:
    assert explained[loop].startswith(
        "the loop runs on the GPU, as one launch of a CUDA graph (on AMD GPUs the host"
    )


@pytest.mark.parametrize(("inside", "reason"), STAYS)
def test_a_loop_that_stays_on_the_host_and_why(inside: str, reason: str, explained: dict[str, str]) -> None:
    assert explained[inside].startswith(f"the loop stays on the host: {reason} (line ")


def test_errors_and_warnings_of_a_copied_loop_come_once(tmp_path: Path) -> None:
    loop = "for (int n = 0; n < 9; n++) {\n#pragma acc parallel loop present(a)\n" \
           "    for (int i = 0; i < N; i++) a[i] = a[i] + n;\n  }"  # fmt: skip
    source = f"{HEAD}int main(void) {{\n  {loop}\n  return 0;\n}}\n"
    errors = compiled(tmp_path, source, "-c").errors
    assert errors.count("warning: this loop goes over all of 'a'") == 1
