"""The agent stays within its budget on a node with 50 jobs: 1 % of a core and 64 MiB."""

from __future__ import annotations

import os

import jobs_cost
import pytest

ROUND_MS = 100  # CPU time: 1 % of a core for rounds of 10 s
RESIDENT_MIB = 64


@pytest.mark.long
@pytest.mark.parametrize("way", jobs_cost.WAYS)
def test_the_agents_cost(way: str) -> None:
    if way == "processes" and os.geteuid() != 0:
        pytest.skip("a slurmstepd counts only if it is root's")
    cost = jobs_cost.WAYS[way](8)
    assert cost["steps"] >= jobs_cost.JOBS  # another test may run steps, too
    assert cost["resident_mib"] <= RESIDENT_MIB
    assert cost["cpu_ms_a_round"] <= ROUND_MS, cost
