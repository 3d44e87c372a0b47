"""Programs compiled by `peerway cc` on a real GPU: those of xacc/tests/system, and the samples."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from xacc_compiled import (
    PEERWAY,
    PROGRAMS,
    SAMPLES,
    SMALL,
    compiled,
    of_all_directives,
    random_loops,
    run,
    sequential,
)

pytest.importorskip("clang.cindex", reason="peerway cc needs libclang; pip install peerway-xacc")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return of_all_directives(tmp_path_factory.mktemp("xacc"))


@pytest.fixture
def settings(kernels: Path) -> dict[str, str]:
    return {"PEERWAY_CACHE": str(kernels), "PEERWAY_ACC": "gpu"}


def outcome(nodes: int, program: Path, **settings: str) -> tuple[int, str, str]:
    command = [PEERWAY, "run", "-n", nodes, "--grace", 60, "--", program]
    done = run(*command, folder=program.parent, NODES=str(nodes), **settings)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_every_directive_gives_what_a_sequential_program_has(
    program: Path, settings: dict[str, str], nodes: int
) -> None:
    assert outcome(nodes, program, **settings) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("program", ["loops", "counted", 1, 2, 3])  # of xacc/tests/system, or a random one
def test_loops_whose_scalars_live_on_the_gpu_give_the_same_bits(
    tmp_path: Path, settings: dict[str, str], program: str | int, nodes: int
) -> None:
    if isinstance(program, str):
        source = PROGRAMS / "device_loops" / f"{program}.c"
    else:
        source = tmp_path / "random.c"
        source.write_text(random_loops(random.Random(program)))
    built = compiled(tmp_path, "-O1", source)
    outcomes = {
        form: outcome(nodes, built, **settings, PEERWAY_ACC_LOOPS=form) for form in ("host", "steps", "graph")
    }
    assert outcomes["host"][0] == 0, outcomes["host"][2]
    assert outcomes["steps"] == outcomes["host"]
    assert outcomes["graph"] == outcomes["host"]


@pytest.mark.parametrize("sizes", ["700 533", "2100 1535"])  # halos share cache lines with what is owned
@pytest.mark.parametrize(("ranks", "nodes"), [(2, "2, 1"), (2, "1, 2"), (4, "2, 2"), (4, "1, 4")])
def test_a_kernel_overlaps_a_reflect_only_where_it_reads_no_halo(
    tmp_path: Path, settings: dict[str, str], ranks: int, nodes: str, sizes: str
) -> None:
    rows, columns = sizes.split()
    options = [f"-DNODES={nodes}", f"-DROWS={rows}", f"-DCOLUMNS={columns}"]
    built = compiled(tmp_path, "-O2", *options, PROGRAMS / "device_loops" / "overlap.c")
    on_cpus = outcome(ranks, built, PEERWAY_ACC="host")
    for loops in ("host", "steps", "graph"):
        assert outcome(ranks, built, **settings, PEERWAY_ACC_LOOPS=loops) == on_cpus


@pytest.mark.parametrize("nodes", [1, 2])
def test_values_that_stay_on_gpus_are_reduced_one_by_one_and_in_a_graph(
    tmp_path: Path, settings: dict[str, str], nodes: int
) -> None:
    status, output, errors = outcome(nodes, compiled(tmp_path, SAMPLES / "reduction.c"), **settings)
    assert (status, errors) == (0, "")
    assert output.count('"right": true') == 2


def test_a_repeated_sequence_gives_the_same(tmp_path: Path, settings: dict[str, str]) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_sequences.c")
    for nodes in (1, 2):
        assert outcome(nodes, program, **settings) == (0, "0 wrong\n", "")


def test_a_loop_that_has_no_kernel_is_done_by_the_host(tmp_path: Path, settings: dict[str, str]) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_host.c", errors="warning: no kernel for GPUs")
    for nodes in (1, 2):
        assert outcome(nodes, program, **settings) == (0, "0 wrong\n", "")


def test_coarrays_between_gpus(tmp_path: Path, settings: dict[str, str]) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_coarrays.c")
    # with two GPUs, two of three images share one, so their kernels run late
    for images in (1, 2, *[3] * 15):
        assert outcome(images, program, **settings) == (0, "0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_spoiled_halo_stays_until_something_writes_the_array(
    tmp_path: Path, settings: dict[str, str], nodes: int
) -> None:
    for source in (PROGRAMS / "xacc_free").iterdir():
        shutil.copy(source, tmp_path)
    program = compiled(tmp_path, f"-DNODES={nodes}", "-DGPU", "acc.c", "spoil.c")
    assert outcome(nodes, program, **settings) == (0, "0 wrong\n", "")


def words(text: str) -> list[str | float]:
    """The words of a text, with numbers as numbers."""

    def word(of: str) -> str | float:
        try:
            return float(of)
        except ValueError:
            return of

    return [word(each) for each in text.split()]


@pytest.mark.parametrize("sample", SMALL)
def test_a_sample_gives_what_it_gives_without_directives(
    tmp_path: Path, settings: dict[str, str], sample: str
) -> None:
    wanted = sequential(tmp_path, sample)
    program = compiled(tmp_path, "-O2", *SMALL[sample], SAMPLES / f"{sample}.c")
    for nodes in (1, 2):
        status, output, errors = outcome(nodes, program, **settings)
        assert status == 0, errors
        # A GPU multiplies and adds in one step, and himeno computes in single precision.
        for here, right in zip(words(output), words(wanted), strict=True):
            assert here == (right if isinstance(right, str) else pytest.approx(right, rel=1e-4)), output
