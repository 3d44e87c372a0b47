"""The samples in CUDA by hand, which examples/xacc/compare_cuda.py times, compile."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_compilers import expect_nvcc_compiles
from launching import ROOT

from peerway_measure.bench.peers import places


@pytest.mark.parametrize(
    "source", sorted((ROOT / "examples" / "xacc" / "cuda").glob("*.cu")), ids=lambda path: path.name
)
def test_nvcc_compiles(source: Path, tmp_path: Path) -> None:
    options = ["-std=c++17", "--extended-lambda"]
    if source.stem.endswith("_mpi"):
        mpicxx = places.tool("mpicxx")
        if mpicxx is None:
            pytest.skip("mpicxx is not here: apt-get install libopenmpi-dev")
        options += ["-ccbin", mpicxx]
    expect_nvcc_compiles(source, tmp_path, *options)
