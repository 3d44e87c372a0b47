"""The prelude of every generated kernel compiles for all types with NVIDIA's compiler."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import pytest
from cc_programs import PRELUDE
from device_compilers import UNOPTIMIZED, compile_with

NUMBERS = [
    "double",
    "float",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "long long",
    "short",
    "char",
    "bool",
]
OPERATORS = ["sum", "product", "max", "min", "and", "or", "bit_and", "bit_or", "bit_xor"]


def uses_of_the_prelude() -> str:
    """A kernel for each reduction and atomic operation of each type that has it."""
    text = ""
    for number, operator in itertools.product(NUMBERS, OPERATORS):
        if operator.startswith("bit_") and number in ("double", "float"):
            continue
        name = f"{operator}_{number.replace(' ', '_')}"
        op = f"pwx_{operator}()"
        text += f"__global__ void reduce_{name}({number} x, pwx_total<{number}> r) {{ r.add({op}, x); }}\n"
        if number not in ("char", "bool"):
            text += f"__global__ void atomic_{name}({number}* x) {{ pwx_atomic({op}, x[0], x[1]); }}\n"
    for number, operator in itertools.product(("double", "float"), ("sum", "product")):
        value = f"pwx_complex<{number}>"
        text += f"__global__ void complex_{operator}_{number}({value} x, pwx_total<{value}> r) "
        text += f"{{ r.add(pwx_{operator}(), x); }}\n"
    return text


@pytest.mark.parametrize(
    ("architecture", "more"),
    [
        pytest.param("compute_75", [UNOPTIMIZED], id="compute_75"),
        *(pytest.param(one, [], id=one, marks=pytest.mark.long) for one in ("compute_90", "sm_75", "sm_90")),
    ],
)
def test_the_prelude_of_generated_kernels_compiles_for_all_types(
    nvrtc: ctypes.CDLL, tmp_path: Path, architecture: str, more: list[str]
) -> None:
    whole = tmp_path / "kernel.cu"
    whole.write_text(PRELUDE + uses_of_the_prelude())
    options = [f"-arch={architecture}", "--std=c++20", "--restrict", "--device-as-default-execution-space"]
    result, log, _ = compile_with(nvrtc, whole, *options, *more)
    assert (result, log.strip("\0\n")) == (0, "")
