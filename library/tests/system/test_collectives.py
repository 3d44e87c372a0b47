"""Collectives between processes: every bit of every rank is compared with what NumPy computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import ranks as launched
from ranks import Ranks

FEW = 11  # cases
METHODS = ["one-shot", "two-shot", "tree", "ring"]


def right_cases(size: int, *arguments: str, **settings: str) -> int:
    """Run the cases; returns how many rank 0 took part in. All must be right."""
    with Ranks("collectives.py", size, *arguments, **settings) as ranks:
        answers = ranks.read_all()
        ranks.end()
    assert [wrong for wrong, _ in answers] == [[]] * size
    return int(answers[0][1])


@pytest.mark.parametrize(
    ("size", "memory", "begin", "method"),
    [
        (1, "numpy", "host", "auto"),
        (2, "allocated", "host", "auto"),
        (3, "numpy", "host", "one-shot"),
        (3, "allocated", "run", "two-shot"),
        (4, "odd", "stream", "two-shot"),
        (4, "numpy", "host", "tree"),
        (5, "allocated", "run", "ring"),
    ],
)
def test_collectives_of_each_kind_type_and_operation(size: int, memory: str, begin: str, method: str) -> None:
    assert right_cases(size, memory, begin, PEERWAY_COLLECTIVE_METHOD=method) > 80


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("paths", ["plan/slots", "plan/straight", "plan/posted"])
def test_collectives_by_each_method_of_plans(paths: str, method: str) -> None:
    settings = {"PEERWAY_PATHS": paths, "PEERWAY_COLLECTIVE_METHOD": method}
    assert right_cases(3, "allocated", "stream", "few", **settings) == FEW


def test_collectives_over_a_nic_with_put_and_get() -> None:
    settings = {"PEERWAY_NIC": "torus", "PEERWAY_PATHS": "nic:torus", "PEERWAY_COLLECTIVE_METHOD": "two-shot"}
    assert right_cases(3, "numpy", "host", "few", **settings) == FEW


@pytest.mark.parametrize(("size", "method"), [*((3, method) for method in METHODS), (4, "hierarchical")])
def test_collectives_between_hosts(size: int, method: str) -> None:
    """Each rank takes itself for one of a host of its own; in a hierarchy, two do."""
    settings = {"PEERWAY_NIC": "torus", "PEERWAY_COLLECTIVE_METHOD": method}
    if method == "hierarchical":
        settings["RANKS_PER_HOST"] = "2"
    with Ranks("far.py", size, "collectives.py", "allocated", "stream", "few", **settings) as ranks:
        assert ranks.read_all() == [[[], FEW]] * size
        ranks.end()


def test_on_a_torus_a_hierarchy_goes_through_its_dimensions(tmp_path: Path) -> None:
    """Each rank is alone on its host, at a node of a grid of two by two."""
    file = tmp_path / "grid.json"
    file.write_text('{"extents": [2, 2]}')
    settings = {"PEERWAY_NIC": f"torus?{file}", "PEERWAY_COLLECTIVE_METHOD": "hierarchical"}
    with Ranks("far.py", 4, "collectives_described.py", **settings) as ranks:
        for ordered, free, _ in ranks.read_all():
            assert "there is no hierarchical here, which is set" in ordered
            assert ": hierarchical (set; " in free
        ranks.end()
    with Ranks("far.py", 4, "collectives.py", "allocated", "stream", "few", **settings) as ranks:
        assert ranks.read_all() == [[[], FEW]] * 4
        ranks.end()


def test_the_description_says_why_a_method_was_chosen() -> None:
    with Ranks("collectives_described.py", 3, PEERWAY_COLLECTIVE_METHOD="ring") as ranks:
        titles, *others = ranks.read_all()
        ranks.end()
    assert others == [titles] * 2
    ordered, free, alone = titles
    assert ordered.startswith("all_reduce (sum) of 1000 float64 on the host, among ranks 0 to 2: one-shot (")
    assert "(there is no ring here, which is set; estimated one-shot " in ordered
    assert free.startswith(
        "all_reduce (sum in any order) of 1000 float64 on the host, among ranks 0 to 2: ring"
    )
    assert all(f"{method} " in free for method in METHODS)
    assert alone == "all_to_all of 3 x 2 float64 on the host, among ranks 0 to 2"  # it has one method


@pytest.mark.parametrize("begin", ["host", "stream"])
def test_the_other_ranks_of_a_collective_are_told_of_a_killed_rank(begin: str) -> None:
    with Ranks("collectives.py", 3, "lost", begin, "numpy") as ranks:
        ranks.expect_all_told_of_a_kill(1)


BOTH = {  # in which the message has both calls
    "kind": ["all_reduce (sum) of 12 float64", "broadcast of 12 float64 from rank 0"],
    "operation": ["(sum)", "(max)"],
    "size": ["of 12 float64", "of 9 float64"],
    "type": ["of 12 float64", "of 12 int64"],
    "root": ["from rank 0", "from rank 1"],
    "group": ["among ranks 0 to 2", "among ranks 1, 0, 2"],
    "counts": ["of 3 x 4 float64", "of 5 + 4 + 4 float64"],
    "receive counts": ["rank 0 sends 2 elements to rank 1, which receives 1 from it"],
}
REFUSED = {  # by rank 1 alone
    "an array with gaps": "not contiguous",
    "complex numbers": "there are integers of 8 to 64 bits",
    "read-only": "is read-only",
    "overlap": "`to` and `from` overlap; use memory that does not, or the same",
}


def test_ranks_that_make_different_collectives_are_told_of_both() -> None:
    with Ranks("collectives_differ.py", 3) as ranks:
        answers = ranks.read_all()
        ranks.end()
    for rank, (ends, in_step) in enumerate(answers):
        assert in_step
        for name, parts in BOTH.items():
            kind, message = ends[name]
            assert kind == "InvalidArgument", (name, message)
            if rank < 2:  # rank 2 is told by whichever rank compared first
                assert all(part in message for part in parts), (name, message)
        for name, part in REFUSED.items():
            kind, message = ends[name]
            assert (kind, part in message) == ("InvalidArgument", True), (name, message)
            assert message.startswith("peerway: rank 1 cannot make this collective") == (rank != 1), message
        assert "and combines bits, which float64 numbers are not made for" in ends["bits of floats"][1]
        assert f"without rank {rank}" in ends["no member"][1]


def test_a_finish_that_timed_out_goes_on_when_the_late_rank_starts() -> None:
    """One-shot and two-shot, by their sizes."""
    launched(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            for count, method in ((8, "one-shot"), (200_000, "two-shot")):
                array = np.full(count, float(ctx.rank + 1))
                total = ctx.all_reduce(array)
                assert f": {method} (estimated " in total.describe(), total.describe()
                if ctx.rank < 2:
                    total.start()
                    try:
                        total.finish(timeout=0.05)
                    except peerway.Timeout as error:
                        assert "waited 0.05 s for a plan of host to finish. It goes on" in str(error), error
                    else:
                        raise AssertionError("finished without rank 2")
                    assert total.status == "ok"
                ctx.team.barrier(60)
                if ctx.rank == 2:
                    total.start()
                total.finish(timeout=60)
                assert (array == 6).all(), array
                ctx.team.barrier(60)
        """,
        3,
    )
