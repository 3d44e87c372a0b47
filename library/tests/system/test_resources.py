"""The system resources of contexts: few, and none once they are closed."""

from __future__ import annotations

import pytest
from ranks import Ranks
from ucx_builds import TCP

MIB = 1 << 20


def test_contexts_regions_and_imports_leave_nothing_behind() -> None:
    with Ranks("resources.py", 2, "cycles") as ranks:
        for before, between, after in ranks.read_all():
            for name in ("descriptors", "threads"):
                assert before[name] == between[name] == after[name], name
            # The allocator may map a little more or less, but 200 leaked contexts or 20,000 leaked regions
            # show.
            assert max(between["mappings"], after["mappings"]) - before["mappings"] < 20
            assert between["resident"] - before["resident"] < 4 * MIB
            assert after["resident"] - between["resident"] < 4 * MIB
        ranks.end()


def test_a_context_of_eight_ranks_takes_little_memory() -> None:
    with Ranks("resources.py", 8, "footprint") as ranks:
        found = ranks.read_all()
        ranks.end()
    print(
        "MiB a rank, empty and after moving to all:",
        [(one["empty_bytes"] / MIB, one["used_bytes"] / MIB) for one in found],
    )
    assert max(one["used_bytes"] for one in found) < 64 * MIB


@pytest.mark.parametrize(
    "more", [{}, {"PEERWAY_NIC": "near=torus;far=torus"}, TCP], ids=["host", "nics", "ucx"]
)
def test_a_context_has_one_thread_whatever_it_communicates_by(more: dict[str, str]) -> None:
    with Ranks("threads.py", 2, **more) as ranks:
        for before, after in ranks.read_all():
            assert [name for name in after if name not in before] == ["pw-progress"]
        ranks.end()
