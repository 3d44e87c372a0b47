"""The kernels that `peerway cc` generates, compiled for AMD GPUs by clang. They never ran on an AMD GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from amd_compiler import ARCHITECTURES, WITH_MATHEMATICS, compile_for, kernels_of
from cc_programs import PRELUDE, RANK_REDUCTION, rank_reduction
from test_cc_kernels import PROGRAMS, emitted, kernels
from test_cc_prelude import uses_of_the_prelude

LONG = pytest.mark.long
USUAL = ("gfx90a", *(pytest.param(name, marks=LONG) for name in ("gfx942", "gfx1100")))
COMPILED_ALWAYS = ("compute.c", "own.c", "acc.f90")
OPTIONS = (*WITH_MATHEMATICS, "-std=c++20", "-w")


def assembly_of(architecture: str, folder: Path, text: str, *options: str) -> str:
    """The assembly of a text behind the prelude."""
    source = folder / "kernels.hip"
    source.write_text(f"{PRELUDE}{text}")
    code, messages, assembly = compile_for(architecture, source, *OPTIONS, *options)
    assert code == 0, messages
    assert set(re.findall(r"\.wavefront_size: +(\d+)", assembly)) <= {str(ARCHITECTURES[architecture])}
    return assembly


@pytest.mark.parametrize("architecture", USUAL)
def test_the_prelude_compiles_for_all_types(architecture: str, tmp_path: Path) -> None:
    uses = uses_of_the_prelude()
    unoptimized = "-O0" if architecture == "gfx90a" else "-O3"
    assembly = assembly_of(architecture, tmp_path, uses, unoptimized)
    assert len(kernels_of(assembly)) == uses.count("__global__")


@pytest.mark.parametrize("architecture", USUAL)
def test_a_reduction_between_gpus_compiles(architecture: str, tmp_path: Path) -> None:
    kinds = {"float": "float", "double": "double", "complex": "pwx_complex<double>"}
    text = RANK_REDUCTION + "".join(rank_reduction(f"join_{name}", kind) for name, kind in kinds.items())
    assembly = assembly_of(architecture, tmp_path, text)
    assert kernels_of(assembly) == {"join_float", "join_double", "join_complex"}


@pytest.mark.parametrize(
    ("program", "architecture"),
    [
        pytest.param(
            program, architecture, id=f"{program.name}-{architecture}",
            marks=[] if (program.name, architecture) in {(n, "gfx90a") for n in COMPILED_ALWAYS} else [LONG],
        )
        for program in PROGRAMS
        for architecture in ARCHITECTURES
    ],
)  # fmt: skip
def test_hiprtc_would_take_every_kernel(tmp_path: Path, program: Path, architecture: str) -> None:
    sources = kernels(emitted(program, *(["-cpp"] if program.suffix == ".f90" else [])))
    assert sources
    text = "".join(f"namespace {name}_alone {{\n{kernel}\n}}\n" for name, kernel in sources.items())
    assert kernels_of(assembly_of(architecture, tmp_path, text)) == set(sources)


REDUCTION = """
extern "C" __global__ void total(const double* x, long n, const pwx_total<double> t) {
  double sum = 0;
  for (long i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  t.add(pwx_sum(), sum);
}
"""


@pytest.mark.parametrize(
    ("architecture", "load", "store", "store_for_host"),
    [
        ("gfx90a", r"global_load_dwordx2 .* glc", r"global_store_dwordx2 .*off$", r"global_store_dwordx2 .*"),
        (
            "gfx942",
            r"global_load_dwordx2 .* sc1",
            r"global_store_dwordx2 .* off sc1",
            r"global_store_dwordx2 .* sc0 sc1",
        ),
        ("gfx1100", r"global_load_b64 .* glc", r"global_store_b64 .*off$", r"global_store_b64 .*"),
    ],
)
def test_a_reduction_reads_past_the_caches_and_shuffles_without_a_mask(
    architecture: str, load: str, store: str, store_for_host: str, tmp_path: Path
) -> None:
    """What LLVM's memory model of AMD GPUs lists for loads and stores of the agent's scope, by which blocks
    pass their values, and for stores of the system's.
    """
    assembly = assembly_of(architecture, tmp_path, REDUCTION)
    assert "ds_bpermute_b32" in assembly
    for instruction in (load, store, store_for_host):
        assert re.search(instruction, assembly, re.M)


def test_arithmetic_between_loops_is_not_contracted(tmp_path: Path) -> None:
    """With the option that the run-time library gives HIPRTC for such kernels."""
    text = 'extern "C" __global__ void one(double* x) { PWX_ONE_THREAD x[0] = x[1] * x[2] + x[3]; }\n'
    assert "v_fma" in assembly_of("gfx90a", tmp_path, text)
    assert "v_fma" not in assembly_of("gfx90a", tmp_path, text, "-ffp-contract=off")


def test_a_subscript_outside_the_memory_ends_the_kernel(tmp_path: Path) -> None:
    text = """extern "C" __global__ void beyond(double* x, long i, long n) {
  x[pwx_in_memory(i, 0, n, "i < n", "prog.c", 7)] = 1;
  assert(n > 0);
}
"""
    assembly = assembly_of("gfx90a", tmp_path, text)
    assert "s_trap" in assembly
    assert "Assertion" in assembly
    unchecked = re.sub(r"pwx_in_memory\(.*?\)", "i", text)
    assert "s_trap" not in assembly_of("gfx90a", tmp_path, unchecked, "-DNDEBUG")
