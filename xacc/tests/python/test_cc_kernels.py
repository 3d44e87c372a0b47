"""The kernels that `peerway cc` generates: their text, and that NVIDIA's compiler accepts them."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cc_programs import PRELUDE, RANK_REDUCTION, compiled, in_main, rank_reduction
from device_compilers import UNOPTIMIZED, compile_with
from launching import ROOT

from peerway_xacc import driver
from peerway_xacc.command_line import FORTRAN, C, read
from peerway_xacc.fortran import driver as fortran

PROGRAMS = [
    *(ROOT / "examples" / "xacc" / f"{sample}.c" for sample in ("laplace", "himeno", "cg", "stream")),
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_cc" / "compute.c",
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_cc" / "mapping.c",
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_cc" / "clauses.c",
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_cc" / "own.c",
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_bounds.c",
    ROOT / "apps" / "lqcd" / "xacc.c",
    ROOT / "apps" / "lqcd" / "xacc_nowait.c",
    ROOT / "xacc" / "tests" / "system" / "programs" / "xacc_fc" / "acc.f90",
    *(ROOT / "examples" / "xacc" / f"{sample}.f90" for sample in ("laplace", "himeno", "cg", "ep")),
    ROOT / "apps" / "lqcd" / "hop.f90",
]
# Short runs compile the programs with the most kinds of directives, in both languages, for one architecture.
COMPILED_ALWAYS = {
    (name, "compute_75") for name in ("compute.c", "clauses.c", "own.c", "himeno.f90", "acc.f90")
}
_KERNEL = re.compile(
    r'static pwx_kernel \w+ = \{"(\w+)",\n(.*?), 0, 0, (?:0|\(const int\[\]\)\{[^}]*\}), 0\};', re.DOTALL
)

ROWS = """\
void rows(int n, const int *begin, const double *a, double *q) {
#pragma acc parallel loop gang vector_length(64)
  for (int i = 0; i < n; i++) {
    double sum = 0;
#pragma acc loop vector reduction(+ : sum)
    for (int e = begin[i]; e < begin[i + 1]; e++) sum += a[e];
    q[i] = sum;
  }
}
"""


def kernels(text: str) -> dict[str, str]:
    """The source of each kernel in a generated text, by the kernel's name."""
    sources = {}
    for name, literals in _KERNEL.findall(text):
        lines = [line.strip()[1:-1] for line in literals.split("\n")]
        sources[name] = "".join(line.encode().decode("unicode_escape") for line in lines)
    return sources


def emitted(program: Path, *options: str) -> str:
    written = io.BytesIO()
    language, run = (FORTRAN, fortran.run) if program.suffix == ".f90" else (C, driver.run)
    if shutil.which(language.compiler) is None:
        pytest.skip(f"{language.compiler} is not installed")
    with contextlib.redirect_stdout(io.TextIOWrapper(written, write_through=True)):
        assert run(read([str(program), *options, "--emit"], dict(os.environ), language)) == 0
        return written.getvalue().decode()


@pytest.mark.parametrize(
    ("program", "architecture"),
    [
        pytest.param(
            program, architecture, id=f"{program.name}-{architecture}",
            marks=[] if (program.name, architecture) in COMPILED_ALWAYS else [pytest.mark.long],
        )
        for program in PROGRAMS
        for architecture in ("compute_75", "sm_90")
    ],
)  # fmt: skip
def test_nvrtc_takes_every_kernel(
    tmp_path: Path,
    nvrtc: ctypes.CDLL,
    program: Path,
    architecture: str,
) -> None:
    sources = kernels(emitted(program, *(["-cpp"] if program.suffix == ".f90" else [])))
    assert sources
    # One source with a namespace for each kernel: compiling the prelude takes longer than most kernels.
    text = "".join(f"namespace {name}_alone {{\n{kernel}\n}}\n" for name, kernel in sources.items())
    source = tmp_path / "kernels.cu"
    source.write_text(PRELUDE + text)
    ways: list[list[str]] = [[UNOPTIMIZED]] if architecture == "compute_75" else [[]]
    if architecture == "sm_90" and "PWX_ALIGNED" in text:
        ways.append(["--define-macro=PWX_JOINED"])
    for options in ways:
        flags = ["-std=c++20", f"--gpu-architecture={architecture}", *options]
        result, log, _ = compile_with(nvrtc, source, *flags)
        assert result == 0, log


SAMPLES = [ROOT / "examples" / "xacc" / f"{sample}.c" for sample in ("laplace", "himeno", "cg", "stream")]
LQCD = [ROOT / "apps" / "lqcd" / f"{name}.c" for name in ("xacc", "xacc_nowait")]


@pytest.mark.parametrize(
    ("program", "options"),
    [
        *((sample, ()) for sample in SAMPLES),
        (LQCD[0], ("-DPZ=2", "-DPT=2")),
        *(pytest.param(sample, (), marks=pytest.mark.long) for sample in LQCD),
        pytest.param(LQCD[1], ("-DPZ=2", "-DPT=2"), marks=pytest.mark.long),
    ],
)
def test_no_subscript_of_a_sample_is_checked(program: Path, options: tuple[str, ...]) -> None:
    """A check in a hot loop costs time: all these subscripts are proved to be in memory."""
    text = emitted(program, *options)
    assert not re.findall(r"PWX_IN\w*\(|pwx_in_\w+", text)


@pytest.mark.parametrize(
    ("program", "layout", "joins"),
    [
        pytest.param("xacc.c", (), True, id="sites"),
        pytest.param("xacc.c", ("-DROWS",), False, id="rows", marks=pytest.mark.long),
        pytest.param("hop.f90", ("-cpp",), True, id="fortran"),
    ],
)
def test_accesses_are_joined_where_neighbours_are_read(
    tmp_path: Path,
    nvrtc: ctypes.CDLL,
    program: str,
    layout: tuple[str, ...],
    joins: bool,
) -> None:
    """The PTX by which the run-time library decides (joins_accesses in runtime/gpu/kernels.cpp): an aligned
    hop.
    """
    sources = kernels(emitted(ROOT / "apps" / "lqcd" / program, *layout))
    [text] = [text for name, text in sources.items() if name.startswith(("hop_sites", "pwf_hop"))]
    source = tmp_path / "hop.cu"
    source.write_text(PRELUDE + text)
    flags = ["-std=c++20", "--restrict", "--gpu-architecture=compute_90"]
    result, log, joined = compile_with(nvrtc, source, *flags, "--define-macro=PWX_JOINED")
    assert result == 0, log
    assert (joined.count(b"ld.global.v2.f64") == 144) == joins  # all of the loads
    result, log, plain = compile_with(nvrtc, source, *flags)
    assert result == 0, log
    assert b".v2." not in plain
    assert b"griddepcontrol.launch_dependents" in plain  # a halo plan after it may start early
    assert b"ld.global.nc.f64" in plain


OF_FLOAT = """\
#include <math.h>
#include <stdlib.h>
void of_float(const float *in, double *out) {
#pragma acc parallel loop copyin(in[0:8]) copyout(out[0:8])
  for (int i = 0; i < 8; i++) out[i] = NAME(in[i]);
}
"""


@pytest.mark.parametrize(
    ("name", "header", "instruction"),
    [
        ("exp", "math.h", b"fma.rn.f64"),
        ("sqrt", "math.h", b"sqrt.rn.f64"),
        ("exp", "tgmath.h", b"ex2.approx"),
        ("abs", "math.h", b"cvt.rzi.s32.f32"),
    ],
)
def test_functions_are_of_the_types_that_c_gives_them(
    tmp_path: Path,
    nvrtc: ctypes.CDLL,
    name: str,
    header: str,
    instruction: bytes,
) -> None:
    done = compiled(tmp_path, OF_FLOAT.replace("NAME", name).replace("math.h", header))
    [text] = kernels(done.text).values()
    source = tmp_path / "kernel.cu"
    source.write_text(PRELUDE + text)
    result, log, ptx = compile_with(nvrtc, source, "-std=c++20", "--gpu-architecture=compute_90")
    assert result == 0, log
    assert instruction in ptx


NAMED_ALIKE = """\
#include <stdio.h>
struct pair { int shift, add; };
static int shift(int i) { return printf("%d", i); }
static int add(int i) { return shift(i); }
void alike(int *out, struct pair of, long total) {
#pragma acc parallel loop copyout(out[0:8]) reduction(+ : total)
  for (int i = 0; i < 8; i++) {
    int shift = i + of.add;
    out[i] = shift, total += i;
  }
}
int main(void) { return add(1); }
"""


def test_a_variable_or_a_member_brings_no_function_of_its_name(tmp_path: Path) -> None:
    done = compiled(tmp_path, NAMED_ALIKE)
    assert (done.status, done.errors) == (0, "")
    [text] = kernels(done.text).values()
    assert "printf" not in text


PAST = """\
void past(int *out) {
#pragma acc parallel loop copy(out[0:8])
  for (int i = 0; i < 8; i++)
    switch (out[i]) {
      case 1:;
        int k = 5;
        out[i] = k;
      default: out[i]++;
    }
}
"""


def test_a_jump_past_a_declaration_is_named(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAST)
    assert "prog.c:8:7: warning: no kernel for GPUs: a switch or goto jumps past a declaration" in done.errors
    braces = PAST.replace("case 1:;", "case 1: {").replace("out[i] = k;", "out[i] = k; }")
    assert compiled(tmp_path, braces).errors == ""


@pytest.mark.parametrize("kind", ["double", "int", "pwx_complex<double>"])
def test_nvrtc_takes_a_reduction_between_gpus(
    tmp_path: Path,
    nvrtc: ctypes.CDLL,
    kind: str,
) -> None:
    source = tmp_path / "join.cu"
    source.write_text(PRELUDE + RANK_REDUCTION + rank_reduction("pwx_join", kind))
    flags = ["-std=c++20", "--restrict", f"-I{ROOT / 'library' / 'include'}"]
    for architecture in ("sm_80", "compute_90"):
        result, log, ptx = compile_with(nvrtc, source, *flags, f"--gpu-architecture={architecture}")
        assert result == 0, log
    before, _, after = ptx.partition(b"griddepcontrol.wait")
    assert b"ld.global" not in before  # nothing is read before the earlier work has ended
    assert b"st.volatile.global" in after


def test_a_compiler_s_own_headers_stay_out_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["gcc", "-print-file-name=include"]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("CPATH", folder)  # as at sites with several compilers
    text = emitted(ROOT / "apps" / "lqcd" / "xacc.c")
    for kernel in kernels(text).values():
        assert not re.search(r"#define (?!_Bool )(__|_[A-Z])", kernel)


def test_only_sizes_that_are_not_known_are_multiplied_at_run_time() -> None:
    """Himeno's coefficients a[4][MI][MJ][MK], of which MI is spread over nodes."""
    (kernel,) = (text for name, text in kernels(emitted(SAMPLES[1])).items() if name.startswith("jacobi_49"))
    for name in "abc":
        assert f"const pwx_rows<const float[33][65], 2> {name}, " in kernel
        assert f"PWX_ALIGNED({name}.at);" in kernel


@pytest.mark.parametrize(
    ("statement", "in_pairs"),
    [
        ("c[i] = a[i];", True),
        ("c[i] = a[i] + b[i];", True),
        ("{ a[i] = 1; c[i] = 2; }", True),
        ("c[i] += a[i] * b[i] + a[i + 1];", False),  # an iteration has loads enough
        ("for (int k = 0; k < i; k++) c[i] += a[k];", False),
        ("total += a[i];", False),
    ],
)
def test_threads_do_two_iterations_at_once_if_these_only_stream(
    tmp_path: Path, statement: str, in_pairs: bool
) -> None:
    reduction = "reduction(+ : total)" if "total" in statement else ""
    source = f"""\
double stream(int n, double *a, double *b, double *c) {{
  double total = 0;
#pragma acc parallel loop {reduction}
  for (int i = 0; i < n; i++) {statement}
  return total;
}}
"""
    result = compiled(tmp_path, source)
    assert result.errors == ""
    [text] = kernels(result.text).values()
    assert ("for (unsigned x__k = 0; x__k < 2; ++x__k)" in text) == in_pairs


@pytest.mark.parametrize(("statement", "at_once"), [("sum += a[i][j];", 4), ("a[i][j] += 1;", 1)])
def test_the_launch_knows_how_many_iterations_a_thread_does_at_once(
    tmp_path: Path, statement: str, at_once: int
) -> None:
    reduction = "reduction(+ : sum)" if "sum" in statement else ""
    source = f"""\
double total(int n, double a[n][n]) {{
  double sum = 0;
#pragma acc parallel loop collapse(2) {reduction}
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {statement}
  return sum;
}}
"""
    result = compiled(tmp_path, source)
    [text] = kernels(result.text).values()
    assert ("y__k < 4" in text) == (at_once == 4)
    assert f"}}, 0, 0, PWX_BY_THREAD, {at_once}}}" in result.text


def test_a_block_does_a_row_and_its_threads_share_it(tmp_path: Path) -> None:
    result = compiled(tmp_path, ROWS)
    assert result.errors == ""
    [text] = kernels(result.text).values()
    assert "for (unsigned x__q = blockIdx.x; x__q < x__all; x__q += gridDim.x)" in text
    shared = "e = (begin[i]) + (long)threadIdx.x * (1); e < begin[i + 1]; e += (1) * (long)blockDim.x"
    assert f"for (int {shared}) sum += a[e];" in text
    assert "sum = pwx_sum()(sum__before, pwx_block(pwx_sum(), sum));" in text
    assert "{ __syncthreads(); if (threadIdx.x == 0) q[i] = sum; __syncthreads(); }" in text
    assert "}, 64, 0, PWX_BY_BLOCK, 1}" in result.text


def test_a_warp_does_a_row_if_its_vector_length_is_32(tmp_path: Path) -> None:
    result = compiled(tmp_path, ROWS.replace("64", "8 * 4"))
    assert result.errors == ""
    [text] = kernels(result.text).values()
    assert "for (unsigned x__q = pwx_warp_of_grid(); x__q < x__all; x__q += pwx_warps_of_grid())" in text
    shared = "e = (begin[i]) + (long)pwx_lane() * (1); e < begin[i + 1]; e += 4 * (1) * (int)pwx_lanes()"
    assert f"for (int {shared}) {{" in text
    assert "int e = e__first + e__k * (1) * (int)pwx_lanes(); if (e < begin[i + 1]) sum += a[e]; } }" in text
    assert "sum = pwx_sum()(sum__before, pwx_whole_warp(pwx_sum(), sum));" in text
    assert "{ pwx_wait_for_warp(); if (pwx_lane() == 0) q[i] = sum; pwx_wait_for_warp(); }" in text
    assert "}, 32, 0, PWX_BY_WARP, 1}" in result.text


ONCE = [  # the inner loop of a sparse product, and what it reads once
    ("int e = begin[i]; e < begin[i + 1]; e++", "a[e] * q[column[e]]", {"a[e]", "column[e]"}),
    ("int e = first; e < begin[i + 1]; e++", "a[e] * q[at[e] + 1]", {"a[e]", "at[e]"}),
    ("int e = begin[i]; e < begin[i + 1]; e++", "a[e] * b[e]", set()),  # nothing is looked up
    ("int e = begin[i]; e < begin[i + 1]; e++", "a[e] * a[column[e]]", {"column[e]"}),
    ("int e = begin[i]; e < begin[i + 1]; e++", "a[e + 1] * q[column[e]]", {"column[e]"}),
    ("int e = 0; e < 9; e++", "a[e] * q[column[e]]", set()),  # all rows read the same elements
    ("int e = begin[i]; e < begin[i + 1]; e++", "(a)[e] * q[column[e]]", {"column[e]"}),
    ("int e = begin[i]; e < begin[i + 1]; e++", "a[e /* ] */] * q[column<:e:>]", {"a[e /* ] */]"}),
    ("int e = begin[i]; e < begin[i + 1]; e++", "own[e] * q[few[e]]", set()),  # not in the GPU's memory
]


@pytest.mark.parametrize(("head", "product", "once"), ONCE)
def test_elements_that_are_read_once(head: str, product: str, once: set[str], tmp_path: Path) -> None:
    result = compiled(
        tmp_path,
        f"""\
static const int few[4] = {{1, 2, 3, 4}};
void sparse(double *r, const double *q, const double *a, const double *b, const int *column, const int *at,
            const int *begin) {{
#pragma acc parallel loop vector_length(32) present(r[0:9], q, a, b, column, at, begin)
  for (int i = 0; i < 9; i++) {{
    const int first = begin[i];
    const double own[4] = {{1, 2, 3, 4}};
    double sum = own[i % 4];
#pragma acc loop vector reduction(+ : sum)
    for ({head}) sum += {product};
    r[i] = sum + first;
  }}
}}
""",
    )
    [text] = kernels(result.text).values()
    assert set(re.findall(r"pwx_read_once\(([^()]*)\)", text)) == once


def test_a_row_whose_sum_no_clause_names_is_done_by_one_thread(tmp_path: Path) -> None:
    result = compiled(tmp_path, ROWS.replace(" reduction(+ : sum)", ""))
    [text] = kernels(result.text).values()
    assert "threadIdx.x == 0" not in text
    assert "}, 64, 0, PWX_BY_THREAD, 1}" in result.text


# The host executes it: it gets the GPU's data of the section before, and gives it back after.
ON_HOST = [
    '{PWX_DATA_PRESENT, "a", 0, (void *)&a[0], (9) * sizeof(a[0])}',
    "pwx_update_host(",
    "pwx_update_device(",
]


@pytest.mark.parametrize(
    ("source", "warning", "done"),
    [
        (
            "int depth;\nstatic int deep(int i) { return i + depth; }\n"
            "void f(int *a) {\n#pragma acc parallel loop copy(a[0:9])\n"
            "  for (int i = 0; i < 9; i++) a[i] = deep(i);\n}\n",
            "prog.c:2:37: warning: no kernel for GPUs: deep, which it calls, uses depth, a variable of the "
            "file that is not const with a value; pass it as an argument; it runs only on CPUs\n"
            "    2 | static int deep(int i) { return i + depth; }\n"
            "      |                                     ^~~~~\n",
            ON_HOST,
        ),
        (
            "void f(int *a, int n) {\n#pragma acc parallel copy(a[0:9])\n  {\n    n = a[0];\n"
            "#pragma acc loop\n    for (int i = 0; i < n; i++) a[i] = 1;\n  }\n}\n",
            "prog.c:4:5: warning: no kernel for GPUs: a statement beside the loops of an acc region "
            "changes n and uses an array; it runs only on CPUs\n"
            "    4 |     n = a[0];\n      |     ^~~~~~~~~\n",
            ["if (pwx_gpu()) pwx_error("],
        ),
        (
            "void f(long double *a) {\n#pragma acc parallel loop copy(a[0:9])\n"
            "  for (int i = 0; i < 9; i++) a[i] = 1;\n}\n",
            "prog.c:2:13: warning: no kernel for GPUs: a is a long double; it runs only on CPUs\n",
            ON_HOST,
        ),
        (
            "void f(int **a) {\n#pragma acc parallel loop copyin(a[0:9])\n"
            "  for (int i = 0; i < 9; i++) a[i][0] = 1;\n}\n",
            "prog.c:3:31: warning: no kernel for GPUs: the pointers that a has lead to memory of the "
            "host; use one block of memory, or name the rows, as in a[0:n][0:m]; it runs only on CPUs\n"
            "    3 |   for (int i = 0; i < 9; i++) a[i][0] = 1;\n      |                               ^\n",
            ["if (pwx_gpu()) pwx_error("],
        ),
        (
            "double f(long double s) {\n#pragma acc parallel loop reduction(* : s)\n"
            "  for (int i = 1; i < 9; i++) s *= i;\n  return s;\n}\n",
            "prog.c:2:41: warning: no kernel for GPUs: the reduction of s is of a long double; it runs "
            "only on CPUs\n    2 | #pragma acc parallel loop reduction(* : s)\n"
            "      |                                         ^\n",
            ["const int host__1 = pwx_gpu(); if (host__1) pwx_acc_wait("],
        ),
        (
            "void f(long double *a) {\n#pragma acc parallel loop deviceptr(a)\n"
            "  for (int i = 0; i < 9; i++) a[i] = 1;\n}\n",
            "prog.c:2:13: warning: no kernel for GPUs: a is a long double; it runs only on CPUs\n",
            ["if (pwx_gpu()) pwx_error("],
        ),
    ],
)
def test_code_without_a_kernel_is_a_warning_at_its_place(
    tmp_path: Path, source: str, warning: str, done: list[str]
) -> None:
    result = compiled(tmp_path, source)
    assert result.status == 0
    assert warning in result.errors
    for text in done:
        assert text in result.text


# Code in a loop's body that C++ for a GPU does not have: the error, and the code it is about.
NO_DEVICE_CODE = {
    "a[i] = elsewhere(i);": (
        "'elsewhere' is not known in device code, nor is its text in this program", "elsewhere"
    ),
    "int t[n]; a[i] = t[0] = i;": ("the size of an array is not known when it is compiled", "n];"),
    "a[i] = ({ int t = i; t; });": (
        "it is not C++ for a GPU (use of GNU statement expression extension)", "{ int t = i; t"
    ),
    "int class = i; a[i] = class;": (
        "it is not C++ for a GPU (declaration of anonymous class must be a definition)", "class"
    ),
    "long double t = i; a[i] = t;": ("a long double, which a GPU does not have", "long"),
    "a[i] = __builtin_popcount(i);": ("__builtin_popcount, which NVRTC does not know", "__builtin"),
    "int *t = (void *)a; t[i] = i;": (
        "it is not C++ for a GPU (cannot initialize a variable of type 'int *' with an rvalue of type "
        "'void *')", "t = (void",
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", NO_DEVICE_CODE)
def test_code_that_a_gpu_cannot_run_is_found_at_compile_time(tmp_path: Path, body: str) -> None:
    why, where = NO_DEVICE_CODE[body]
    line = f"  for (int i = 0; i < n; i++) {{ {body} }}"
    source = f"int elsewhere(int);\nvoid f(int *a, int n) {{\n#pragma acc parallel loop\n{line}\n}}\n"
    result = compiled(tmp_path, source)
    assert result.status == 0
    column = line.index(where) + 1
    assert result.errors.startswith(f"prog.c:4:{column}: warning: no kernel for GPUs: {why};")
    assert "pwx_launch" not in result.text


def test_an_atomic_statement_in_a_kernel(tmp_path: Path) -> None:
    result = compiled(tmp_path, (
        "void count(int n, const int *at, int *hits) {\n"
        "#pragma acc parallel loop present(at[0:n], hits)\n"
        "  for (int i = 0; i < n; i++) {\n#pragma acc atomic\n    hits[at[i]] += 1;\n  }\n}\n"
    ))  # fmt: skip
    assert result.errors == ""
    [text] = kernels(result.text).values()
    assert "pwx_atomic(pwx_sum{}, hits[at[i]], decltype(pwx_atomic_read(hits[at[i]]))((1)));" in text


@pytest.mark.parametrize(
    ("outer", "inner"), [("kernels loop independent", "loop"), ("parallel loop", "loop auto")]
)
def test_a_loop_that_may_not_be_independent_is_done_in_order(tmp_path: Path, outer: str, inner: str) -> None:
    source = in_main(
        f"#pragma acc {outer}",
        "  for (int i = 0; i < N; i++)",
        f"#pragma acc {inner}",
        "    for (int j = 1; j < 4; j++) c[i * 4 % N] += j;",
    )
    text = compiled(tmp_path, source).text
    kernel = text[text.index("__global__") : text.index("static pwx_unit")]
    assert "for (int j = 1; j < 4; j++)" in kernel[: kernel.index("static ")]
