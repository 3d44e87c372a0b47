"""Programs compiled by `peerway cc` through HIP and HIPRTC on NVIDIA GPUs: their doubles over NVIDIA's driver
and NVRTC. Streams, kernels and exchanges are real; only what AMD's software and hardware do is not tested.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import test_xacc
from xacc_compiled import LOOPS, PEERWAY, PROGRAMS, SAMPLES, compiled, of_all_directives, run

pytest.importorskip("clang.cindex", reason="peerway cc needs libclang; pip install peerway-xacc")

Settings = dict[str, str]


@pytest.fixture(scope="module")
def settings(hip_over_cuda: Settings) -> Settings:
    return {**hip_over_cuda, "PEERWAY_ACC": "gpu"}


def outcome(nodes: int, program: Path, settings: Settings, **more: str) -> tuple[int, str, str]:
    command = [PEERWAY, "run", "-n", nodes, "--grace", 60, "--", program]
    done = run(*command, folder=program.parent, NODES=str(nodes), **settings, **more)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("nodes", [1, 2])
def test_data_kernels_reductions_queues_and_reflects(tmp_path: Path, settings: Settings, nodes: int) -> None:
    program = test_xacc.compiled(tmp_path, "acc", "shapes")
    assert outcome(nodes, program, settings) == (0, f"{145 * nodes} checks, 0 failed\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_directive_gives_what_a_sequential_program_has(
    tmp_path: Path, settings: Settings, nodes: int
) -> None:
    program = of_all_directives(tmp_path)
    assert outcome(nodes, program, settings) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_loops_stay_on_the_host_and_give_the_same_bits(
    tmp_path: Path, settings: Settings, nodes: int
) -> None:
    program = compiled(tmp_path, "-O1", LOOPS)
    on_host = outcome(nodes, program, settings, PEERWAY_ACC_LOOPS="host")
    assert on_host[0] == 0, on_host[2]
    assert outcome(nodes, program, settings, PEERWAY_ACC_LOOPS="graph") == on_host


@pytest.mark.parametrize("name", ["xacc_sequences.c", "xacc_coarrays.c"])
def test_sequences_and_coarrays(tmp_path: Path, settings: Settings, name: str) -> None:
    program = compiled(tmp_path, PROGRAMS / name)
    for nodes in (1, 2):
        assert outcome(nodes, program, settings) == (0, "0 wrong\n", "")


def test_values_that_stay_on_gpus_are_reduced(tmp_path: Path, settings: Settings) -> None:
    status, output, errors = outcome(2, compiled(tmp_path, SAMPLES / "reduction.c"), settings)
    assert (status, errors) == (0, "")
    assert output.count('"right": true') == 2
