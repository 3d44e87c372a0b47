"""The samples in CUDA by hand, which examples/xacc/compare_cuda.py times, compile."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_compilers import expect_nvcc_compiles
from launching import ROOT


@pytest.mark.parametrize(
    "source", sorted((ROOT / "examples" / "xacc" / "cuda").glob("*.cu")), ids=lambda path: path.name
)
def test_nvcc_compiles(source: Path, tmp_path: Path) -> None:
    expect_nvcc_compiles(source, tmp_path, "-std=c++17", "--extended-lambda")
