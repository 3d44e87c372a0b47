"""Loops of the host whose scalars live on the GPU: every way to run them gives the same bits.

The GPU is a fake one, which has graphs with conditional nodes, too. xacc/tests/gpu/test_xacc_cc.py runs the
same program on a real GPU.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from xacc_compiled import LOOPS, PEERWAY, PROGRAMS, compiled, random_loops, run

RANKS = [2, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (1, 4))]


def outcome(ranks: int, program: Path, loops: str, **settings: str) -> str:
    command = [PEERWAY, "run", "-n", ranks, "--grace", 60, "--", program]
    done = run(*command, folder=program.parent, **settings, PEERWAY_ACC_LOOPS=loops)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("loops"), "-O1", LOOPS)


@pytest.mark.parametrize("ranks", RANKS)
def test_loops_give_the_same_bits_in_every_form(ranks: int, program: Path, fake_gpu: dict[str, str]) -> None:
    on_cpus = outcome(ranks, program, "host", PEERWAY_ACC="host")
    assert outcome(ranks, program, "steps", PEERWAY_ACC="host") == on_cpus
    on_gpus = outcome(ranks, program, "host", **fake_gpu)
    assert outcome(ranks, program, "steps", **fake_gpu) == on_gpus
    assert outcome(ranks, program, "graph", **fake_gpu) == on_gpus


@pytest.mark.parametrize("ranks", RANKS)
def test_loops_that_the_host_counts_give_the_same_bits_in_every_form(
    ranks: int, tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    source = PROGRAMS / "device_loops" / "counted.c"
    program = compiled(tmp_path, "-O1", source)
    on_cpus = outcome(ranks, program, "host", PEERWAY_ACC="host")
    assert outcome(ranks, program, "steps", PEERWAY_ACC="host") == on_cpus
    on_gpus = outcome(ranks, program, "host", **fake_gpu)
    assert outcome(ranks, program, "steps", **fake_gpu) == on_gpus
    assert outcome(ranks, program, "graph", **fake_gpu) == on_gpus
    in_batches = compiled(tmp_path, "-O1", "-DPWX_MOST_OF_BATCH=11", source)
    assert outcome(ranks, in_batches, "graph", **fake_gpu) == on_gpus


@pytest.mark.parametrize(
    ("ranks", "nodes"),
    [
        (2, "2, 1"),
        (2, "1, 2"),
        pytest.param(4, "2, 2", marks=pytest.mark.long),
        pytest.param(4, "1, 4", marks=pytest.mark.long),
    ],
)
def test_a_kernel_overlaps_a_reflect_only_where_it_reads_no_halo(
    ranks: int, nodes: str, tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    """In graphs, the fake GPU runs a reflect as late as the kernel after it lets it."""
    program = compiled(tmp_path, "-O1", f"-DNODES={nodes}", PROGRAMS / "device_loops" / "overlap.c")
    on_cpus = outcome(ranks, program, "host", PEERWAY_ACC="host")
    for loops in ("host", "steps", "graph"):
        assert outcome(ranks, program, loops, **fake_gpu) == on_cpus


def test_kernels_that_may_overlap_reflects_do_so(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    program = compiled(tmp_path, "-O1", "-DNODES=1, 2", PROGRAMS / "device_loops" / "overlap.c")
    command = [PEERWAY, "run", "-n", 2, "--", program]
    done = run(*command, folder=tmp_path, **fake_gpu, PEERWAY_ACC_LOOPS="graph", FAKE_CUDA_SAYS_OVERLAPS="1")
    assert done.returncode == 0
    counts = [int(count) for count in re.findall(r"^(\d+) kernels overlapped a reflect$", done.stderr, re.M)]
    assert len(counts) == 2
    assert min(counts) >= 3  # in each graph: those of wide, corners and inside


def test_a_large_reflect_leaves_room_if_a_kernel_overlaps_it(
    tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    """The fake GPU has four multiprocessors. Each launch has the blocks that its own kernel wants, although
    the reflects share a plan, and also in graphs. Only one that is launched before its kernel is known has
    those that the kernel wanted the last time.
    """
    program = compiled(tmp_path, "-O1", PROGRAMS / "device_loops" / "room.c")
    for loops in ("host", "graph"):
        command = [PEERWAY, "run", "-n", 2, "--", program]
        settings = fake_gpu | {"PEERWAY_ACC_LOOPS": loops, "FAKE_CUDA_SAYS_PLANS": "1"}
        done = run(*command, folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        rounds = ["4 4 1 4", "1 4 1 4", "1 4 1 4", "1 4 1 4"]
        assert done.stderr == f"blocks of plans: {' '.join(rounds)}\n" * 2


def test_a_rank_without_elements_knows_which_halos_are_old(tmp_path: Path, fake_gpu: dict[str, str]) -> None:
    program = compiled(tmp_path, "-O1", PROGRAMS / "device_loops" / "empty.c")
    on_host = outcome(3, program, "host", **fake_gpu)
    assert outcome(3, program, "graph", **fake_gpu) == on_host


@pytest.mark.parametrize(
    "options", [["-DCOUNTED"], *(pytest.param(more, marks=pytest.mark.long) for more in ([], ["-DREFLECT"]))]
)
def test_a_lost_rank_ends_a_loop_in_a_graph(
    options: list[str], tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    program = compiled(tmp_path, "-O1", *options, PROGRAMS / "device_loops" / "lost.c")
    command = [PEERWAY, "run", "-n", 2, "--grace", 60, "--", program]
    done = run(*command, folder=tmp_path, **fake_gpu, PEERWAY_ACC_LOOPS="graph", FAKE_CUDA_LATE="1")
    assert done.returncode != 0
    assert done.stdout == ""
    assert re.search(r"lost\.c:\d+: error: (.*: )?rank 1 was lost", done.stderr), done.stderr


def random_program(folder: Path, seed: int) -> Path:
    (folder / "random.c").write_text(random_loops(random.Random(seed)))
    return compiled(folder, "-O1", "random.c")


@pytest.mark.parametrize(
    "seed", [4, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, *range(5, 40)))]
)
def test_random_loops_give_the_same_bits_on_cpus(seed: int, tmp_path: Path) -> None:
    program = random_program(tmp_path, seed)
    on_host = outcome(2, program, "host", PEERWAY_ACC="host")
    assert outcome(2, program, "steps", PEERWAY_ACC="host") == on_host


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_random_loops_give_the_same_bits_in_every_form(
    seed: int, tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    program = random_program(tmp_path, seed)
    on_gpus = outcome(2, program, "host", **fake_gpu)
    assert outcome(2, program, "steps", **fake_gpu) == on_gpus
    assert outcome(2, program, "graph", **fake_gpu) == on_gpus
