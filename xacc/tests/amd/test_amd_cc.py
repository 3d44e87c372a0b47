"""Programs compiled by `peerway cc` on AMD GPUs (`make amd-test`). Nobody who works on Peerway has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from xacc_compiled import (
    LOOPS,
    PEERWAY,
    PROGRAMS,
    SAMPLES,
    SMALL,
    compiled,
    of_all_directives,
    run,
    sequential,
)

pytest.importorskip("clang.cindex", reason="peerway cc needs libclang; pip install peerway-xacc")

Settings = dict[str, str]


def outcome(nodes: int, program: Path, settings: Settings, **more: str) -> tuple[int, str, str]:
    command = [PEERWAY, "run", "-n", nodes, "--grace", 60, "--", program]
    done = run(*command, folder=program.parent, NODES=str(nodes), PEERWAY_ACC="gpu", **settings, **more)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_directive_gives_what_a_sequential_program_has(
    tmp_path: Path, amd: Settings, nodes: int
) -> None:
    program = of_all_directives(tmp_path)
    assert outcome(nodes, program, amd) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_loops_whose_scalars_live_on_the_gpu_give_the_same_bits(
    tmp_path: Path, amd: Settings, nodes: int
) -> None:
    program = compiled(tmp_path, "-O1", LOOPS)
    on_host = outcome(nodes, program, amd, PEERWAY_ACC_LOOPS="host")
    assert on_host[0] == 0, on_host[2]
    assert outcome(nodes, program, amd, PEERWAY_ACC_LOOPS="graph") == on_host


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", ["xacc_sequences.c", "xacc_coarrays.c"])
def test_sequences_and_coarrays(tmp_path: Path, amd: Settings, name: str, nodes: int) -> None:
    assert outcome(nodes, compiled(tmp_path, PROGRAMS / name), amd) == (0, "0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_values_that_stay_on_gpus_are_reduced(tmp_path: Path, amd: Settings, nodes: int) -> None:
    status, output, errors = outcome(nodes, compiled(tmp_path, SAMPLES / "reduction.c"), amd)
    assert (status, errors) == (0, "")
    assert output.count('"right": true') == 2


def test_a_sample_gives_what_it_gives_without_directives(tmp_path: Path, amd: Settings) -> None:
    wanted = sequential(tmp_path, "laplace").split()
    program = compiled(tmp_path, "-O2", *SMALL["laplace"], SAMPLES / "laplace.c")
    status, output, errors = outcome(2, program, amd)
    assert status == 0, errors
    assert len(output.split()) == len(wanted)
    for word, right in zip(output.split(), wanted, strict=True):
        try:
            assert float(word) == pytest.approx(float(right), rel=1e-4), output
        except ValueError:
            assert word == right, output
