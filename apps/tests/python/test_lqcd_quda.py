"""What is read from the output of QUDA's tests, which itself needs a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "lqcd"))

import quda
from evaluate import WrongRun
from programs import CannotBuild

HOP = """Tuning...
Executing 1000 kernel loops...
done.

28.761568us per kernel call
89653248 flops per kernel call, 1368 flops per site 1536 bytes per site
GFLOPS = 3117.119672
GBYTES = 3499.96
Results: reference = 1.5, QUDA = 1.5, L2 relative deviation = 2.220446e-16, max deviation = 1.1e-15
"""
SOLVES = """Done: 273 iter / 0.0411 secs = 1400.2 Gflops
Done: 273 iter / 0.03836 secs = 1484.13 Gflops
"""


def test_a_hop() -> None:
    hop = {"hop_us": 28.761568, "hop_gflop": 3117.119672, "deviation": 2.220446e-16}
    assert quda.hop_of(HOP, ranks=1) == hop


def test_a_hop_on_several_gpus_includes_its_halo() -> None:
    peers = "Peer-to-peer enabled for rank   0 (gpu=0) with neighbor   1 (gpu=1) dir=0, dim=2\n"
    assert quda.hop_of(peers + HOP, ranks=2) == {
        "hop_with_halo_us": 28.761568,
        "hop_gflop": 2 * 3117.119672,
        "peer_to_peer": True,
        "deviation": 2.220446e-16,
    }
    assert not quda.hop_of(HOP, ranks=2)["peer_to_peer"]


@pytest.mark.parametrize(
    ("grid", "processes", "sites"),
    [((1, 1), "1 1 1 1", "16 16 16 16"), ((1, 2), "1 1 2 1", "16 16 8 16"), ((4, 2), "1 1 2 4", "16 16 8 4")],
)
def test_processes_divide_z_and_t(grid: tuple[int, int], processes: str, sites: str) -> None:
    assert quda.lattice_options(16, grid) == ["--gridsize", *processes.split(), "--dim", *sites.split()]


def test_an_odd_part_of_the_lattice_is_refused() -> None:
    with pytest.raises(CannotBuild, match="6⁴ sites on 1x2"):
        quda.lattice_options(6, (1, 2))


def test_the_last_solve() -> None:
    solve = quda.solve_of(SOLVES)
    assert solve == {
        "iteration_us": pytest.approx(140.51, abs=0.01),
        "iterations": 273,
        "solver_gflop": 1484.13,
    }


def test_output_without_a_result_is_refused() -> None:
    with pytest.raises(WrongRun, match="us per kernel call"):
        quda.hop_of("QUDA 1.1.0\n", ranks=1)
    with pytest.raises(WrongRun, match="no solve"):
        quda.solve_of(HOP)


def test_what_cuda_13_refuses_is_replaced() -> None:
    body = "\n    {\n      f();\n      if (g) {\n      }\n    }\n"
    text = f"    void print_device_properties(){body}\n    void next()\n"
    name, pattern, replacement = next(change for change in quda.CHANGES if "device.cpp" in change[0])
    assert name == "lib/targets/cuda/device.cpp"
    changed, changes = quda.replaced(text, pattern, replacement)
    assert changes == 1
    assert changed == "    void print_device_properties() { }\n\n    void next()\n"
