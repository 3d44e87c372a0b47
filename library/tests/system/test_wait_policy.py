"""The two wait policies between real processes: the cost of a wait, and what wakes a sleeping rank."""

from __future__ import annotations

from typing import Any

import pytest
from ranks import Ranks

import peerway

WAITED = 0.5  # s
pytestmark = pytest.mark.alone


def wait(operation: str, policy: str) -> dict[str, Any]:
    """Rank 0's report of its wait for rank 1."""
    with Ranks("wait_policy.py", 2, operation, policy, WAITED) as ranks:
        assert ranks.read_all() == ["waiting"] * 2
        usage: dict[str, Any] = ranks.read(0)
        ranks.send_line(1)
        return usage


@pytest.mark.parametrize("operation", ["put", "staged", "host", "host/stream"])
def test_blocking_leaves_the_cpu_to_others(operation: str) -> None:
    spun, slept = (wait(operation, policy) for policy in ("busy-poll", "blocking"))
    for usage in (spun, slept):
        assert usage["error"] == ""
        assert usage["wall"] > WAITED / 2
    assert slept["share"] < 0.1
    if spun["share"] > 0.5:  # otherwise other processes used the CPU, and it gave way to them
        assert slept["share"] < spun["share"] / 5


@pytest.mark.parametrize("policy", ["busy-poll", "blocking"])
def test_a_close_wakes(policy: str) -> None:
    assert wait("close", policy)["error"] == "Closed"


@pytest.mark.parametrize("policy", ["busy-poll", "blocking"])
def test_the_death_of_the_peer_wakes(policy: str) -> None:
    with Ranks("wait_policy.py", 2, "hang", policy, WAITED) as ranks:
        assert ranks.read_all() == ["waiting"] * 2
        ranks.kill(1)
        assert ranks.read(0)["error"] == "PeerLost"
        ranks.end(1)


def test_the_setting_is_the_policy_of_every_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERWAY_WAIT", "blocking")
    with peerway.Context() as ctx:
        assert ctx.wait_policy == "blocking"
        ctx.wait_policy = "busy-poll"
        assert ctx.wait_policy == "busy-poll"


def test_a_policy_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        peerway.Context() as ctx,
        pytest.raises(
            peerway.InvalidArgument, match=r"'lazy' is not a wait policy; .*busy-poll and blocking"
        ),
    ):
        ctx.wait_policy = "lazy"
    monkeypatch.setenv("PEERWAY_WAIT", "lazy")
    with pytest.raises(peerway.BadConfig, match="PEERWAY_WAIT is 'lazy'"):
        peerway.Context()
