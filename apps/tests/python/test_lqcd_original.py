"""What is read from the output of the original lattice QCD program, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "lqcd"))

import original
from evaluate import WrongRun
from programs import CannotBuild

HEADER = """# define PT 16
# define NX      32
# define NY      NX
//#define NUM_GANGS 128
#define NUM_GANGS 28
"""
SOLVES = "".join(
    f" {colour:3d} {spin:3d}  {57:6d} {9.5e-17:12.4e}\n" for colour in range(3) for spin in range(4)
)
# As two ranks print it: the second one wrote its time slices first.
OUTPUT = f"""      2     1.57050845e+00
      3     6.73975033e+00
NX =   4, NY =   4, NZ =   4, NT =   4
  elapsed time for solver   = 0.400000
Solver:
  ic  id   nconv      diff
{SOLVES}
performance of solver:
  elapsed time for solver   = 6.960000
solution squared at each time slice:
      0     5.42827512e+01
      1     6.81442357e+00
"""


def test_results_are_of_all_sources_and_time_slices() -> None:
    results = original.results_of(OUTPUT)
    assert results["nconv"] == [57] * 12
    assert results["residuals"] == [9.5e-17] * 12
    assert results["correlator"] == [54.2827512, 6.81442357, 1.57050845, 6.73975033]
    assert results["solve_s"] == pytest.approx(0.58)
    assert results["iteration_us"] == pytest.approx(10000)
    assert results["hop_us"] == pytest.approx(1000)


def test_output_without_all_solves_is_refused() -> None:
    with pytest.raises(WrongRun, match="11 of 12 solves"):
        original.results_of(OUTPUT.replace("   2   3      57   9.5000e-17\n", ""))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nconv": [57] * 11 + [-1]}, "not all solves converged"),
        ({"nconv": [57] * 11 + [59]}, "iterations"),
        ({"residuals": [float("nan")] * 12}, "|HHx - b|^2"),
        ({"correlator": [54.2827512, 6.81442357, 1.57050845]}, "3 time slices"),
        ({"correlator": [54.2827512, 6.81442357, 1.57050845, 6.7397]}, "correlator"),
    ],
)
def test_a_wrong_result_is_found(change: dict[str, Any], message: str) -> None:
    right = original.results_of(OUTPUT)
    assert list(original.differences(right, {**right, "nconv": [58] * 12})) == []
    assert message in "\n".join(original.differences({**right, **change}, right))


def test_only_the_numbers_of_the_header_change() -> None:
    changed = original.with_numbers(HEADER, {"NX": 8, "NUM_GANGS": 4096})
    assert changed == HEADER.replace("32", "8").replace("GANGS 28", "GANGS 4096")
    with pytest.raises(CannotBuild, match="NGPUS 0 times"):
        original.with_numbers(HEADER, {"NGPUS": 1})


def test_random_links_are_unitary(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    original.write_random_links(tmp_path / "links")
    links = np.loadtxt(tmp_path / "links").reshape(-1, 3, 3, 2)
    assert len(links) == 8 * 8 * 8 * 16 * 4
    matrices = links[..., 0] + 1j * links[..., 1]
    assert np.allclose(matrices @ matrices.conj().swapaxes(1, 2), np.eye(3), atol=1e-14)
    assert np.allclose(np.linalg.det(matrices), 1, atol=1e-14)
