"""Compiles programs with `peerway cc`, for the tests with several processes and those on GPUs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from launching import made_once
from rank_server import Rank

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "xacc" / "tests" / "system" / "programs"
SAMPLES = ROOT / "examples" / "xacc"
PEERWAY = Path(sys.executable).with_name("peerway")
PARTS = (
    "mapping", "communication", "compute", "clauses", "own", "data", "operators", "between", "declarators",
    "intrinsics", "gmoves", "newer", "data_newer", "main",
)  # fmt: skip
LOOPS = PROGRAMS / "device_loops" / "loops.c"
SMALL: dict[str, list[str]] = {"laplace": [], "himeno": [], "cg": [], "stream": ["-DN=100000"]}
LIMIT = 600  # seconds after which a program counts as hanging


def run(*command: object, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Our compilers are forked from a server that has imported them."""
    words = [str(word) for word in command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    if command[0] == PEERWAY and command[1] in ("cc", "fc"):
        ended = Rank(words, environment, "compilers", str(folder)).completed(LIMIT)
        return subprocess.CompletedProcess(words, *ended)
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def compiled(folder: Path, *words: object, errors: str = "") -> Path:
    """Run `peerway cc` with these words, and return the program.

    It must print nothing, or at least `errors`.
    """
    compilation = run(PEERWAY, "cc", *words, "-lm", "-o", "program", folder=folder)
    assert compilation.returncode == 0, compilation.stderr
    assert compilation.stderr == errors if errors == "" else errors in compilation.stderr
    return folder / "program"


def of_all_directives(folder: Path, *options: str) -> Path:
    """Compile each part of xacc_cc separately, and link them to one program."""
    for source in (PROGRAMS / "xacc_cc").iterdir():
        shutil.copy(source, folder)
    for part in PARTS:
        words = ["-Wall", "-Wextra", "-O1", "-g", *options, "-c", f"{part}.c"]
        compilation = run(PEERWAY, "cc", *words, folder=folder)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    return compiled(folder, *options, *(f"{part}.o" for part in PARTS))


def shared_program_of_all_directives(shared_folder: Path) -> Path:
    """That program with UBSan, whose reports appear in the errors. It is compiled once in a test run.

    test_xacc_defined has other compilers and levels.
    """
    folder = shared_folder / "all_directives"
    with made_once(folder) as make:
        return of_all_directives(folder, "-fsanitize=undefined") if make else folder / "program"


def sequential(folder: Path, sample: str) -> str:
    """The output of a sample that is compiled without its directives."""
    plain = [
        "gcc",
        "-O2",
        *SMALL[sample],
        "-I",
        ROOT / "xacc" / "include" / "peerway" / "xacc",
        SAMPLES / f"{sample}.c",
    ]
    assert run(*plain, "-lm", "-o", "plain", folder=folder).returncode == 0
    wanted = run("./plain", folder=folder)
    assert wanted.returncode == 0
    return wanted.stdout


def assert_alike(text: str, wanted: str, relative: float = 1e-5) -> None:
    """The words of two texts are the same, and numbers nearly so."""
    words, right = text.split(), wanted.split()
    assert len(words) == len(right), text
    for word, expected in zip(words, right, strict=True):
        try:
            number, right_number = (float(each.rstrip(",")) for each in (word, expected))
            near = abs(number - right_number) <= relative * abs(right_number)
        except ValueError:
            near = False
        assert word == expected or near, f"{word} instead of {expected} in\n{text}"


_HEAD = """\
#include <math.h>
#include <stdio.h>
#include <xmp.h>
#define N 20
#pragma xmp nodes nodes(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto nodes
static double a[N], b[N];
#pragma xmp align[i] with t(i)::a, b
#pragma xmp shadow[1] ::a, b
static double total(void) {
  double sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(a, b)
  for (int i = 0; i < N; i++) sum += a[i] * 0.01 + b[i] * 0.02;
  return sum;
}
static double scaled(double by) {
  double sum = 1;
#pragma xmp loop on t(i) reduction(+ : sum)
#pragma acc parallel loop reduction(+ : sum) present(a)
  for (int i = 0; i < N; i++) {
    a[i] = a[i] * 0.5 + by;
    sum += a[i];
  }
  return sum * 0.125;
}
"""
_SCALARS = ("u", "v", "w", "k")
_NEIGHBOURS = """\
#pragma xmp reflect(a) width(/periodic/1 : 1) acc
#pragma xmp loop on t(i)
#pragma acc parallel loop present(a, b)
    for (int i = 0; i < N; i++) b[i] = (a[i - 1] + a[i + 1]) * 0.25 + {by} * 0.125;
"""


def random_loops(rng: random.Random) -> str:
    """A program with random loops of loops of acc, reflects, arithmetic and an exit; it prints all bits."""
    loops = "".join(_random_loop(rng, number) for number in range(4))
    calls = "".join(f"  loop{number}({rng.randint(0, 9)});\n" for _ in range(3) for number in range(4))
    return f"""{_HEAD}{loops}int main(void) {{
#pragma acc enter data create(a, b)
#pragma xmp loop on t(i)
#pragma acc parallel loop present(a, b)
  for (int i = 0; i < N; i++) a[i] = i, b[i] = N - i;
{calls}  return 0;
}}
"""


def _random_loop(rng: random.Random, number: int) -> str:
    body = [_random_statement(rng) for _ in range(rng.randint(2, 6))]
    body.insert(rng.randint(0, len(body)), _random_compute(rng))
    if rng.random() < 0.6:
        leave = f"  if ({_random_condition(rng)}) {rng.choice(['break', 'return'])};\n"
        body.insert(rng.randint(0, len(body)), leave)
    head = rng.choice([
        "for (int n = 0; n < most; n++)", "for (n = most; n > 0; n -= 2)", "while (n++ < most)"
    ])  # fmt: skip
    return f"""static void loop{number}(const int most) {{
  double u = 1, v = 0.5;
  float w = 0.25f;
  long k = 3;
  int n = 0;
  {head} {{
{"".join(body)}  }}
{_NEIGHBOURS.format(by="u")}  v += total();
#pragma xmp task on nodes(1)
  printf("{number} %a %a %a %ld %d\\n", u, v, (double)w, k, n);
}}
"""


def _random_value(rng: random.Random) -> str:
    return rng.choice([*_SCALARS, "n", "0.5", "2", "1.25f", "fabs(u)", "sqrt(fabs(v))"])


def _random_expression(rng: random.Random) -> str:
    text = _random_value(rng)
    for _ in range(rng.randint(0, 2)):
        text = f"({text} {rng.choice('+-*')} {_random_value(rng)}) * 0.25"
    return text


def _random_condition(rng: random.Random) -> str:
    return f"{_random_expression(rng)} {rng.choice(['<', '>', '>='])} {_random_expression(rng)} + 1"


def _random_statement(rng: random.Random) -> str:
    target = rng.choice(_SCALARS)
    return rng.choice([
        f"  {target} = {_random_expression(rng)};\n",
        f"  {target} += {_random_expression(rng)};\n",
        f"  if ({_random_condition(rng)}) {target} = {_random_expression(rng)}; else k++;\n",
        f"  for (int j = 0; j < 2; j++) {target} = {target} * 0.5 + j;\n",
        f"  {target} = scaled({_random_expression(rng)} * 0.1);\n",
        f"  {target} = total() + scaled(total());\n",
        _random_compute(rng),
    ])  # fmt: skip


def _random_compute(rng: random.Random) -> str:
    """A reflect and a loop of acc that reads scalars, or one that reduces into a scalar."""
    if rng.random() < 0.3:
        return """\
#pragma xmp loop on t(i) reduction(max : u)
#pragma acc parallel loop reduction(max : u) present(a)
    for (int i = 0; i < N; i++) u = a[i] * 0.5 > u ? a[i] * 0.5 : u;
"""
    neighbours = _NEIGHBOURS.format(by=rng.choice(_SCALARS))
    if rng.random() < 0.3:
        return neighbours  # an iteration may end with the halos of a out of date
    return f"""\
{neighbours}#pragma xmp loop on t(i)
#pragma acc parallel loop present(a, b)
    for (int i = 0; i < N; i++) a[i] = b[i];
"""
