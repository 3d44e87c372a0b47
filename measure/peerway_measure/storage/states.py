"""Judges what the caches held when a file was read: by evidence, never by assumption.

All functions are pure, so that they can be tested with data alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from peerway_measure.records import STATE_WANTED

State = Literal["cold", "warm_here", "warm_elsewhere", "after_drop"]
STATES: tuple[State, ...] = ("cold", "warm_here", "warm_elsewhere", "after_drop")
UNKNOWN = "unknown"
# Shares of a file that count as all of it and as none, because counters include read-ahead and others' bytes.
_WHOLE, _NONE = 0.99, 0.01


def test_of(state: str) -> str:
    """The test of a read in such a state."""
    return f"file_read_{state}_bw"


@dataclass(frozen=True)
class Evidence:
    """What was observed.

    `resident` is the share of the file in this node's page cache before the read, found by `residency`; None
    if it cannot be seen. `fetched` is the number of bytes that came from the network or the device meanwhile,
    according to `counter`; None if nothing counts them.
    """

    requested: int
    resident: float | None
    residency: str = ""
    fetched: int | None = None
    counter: str = ""


@dataclass(frozen=True)
class Judgement:
    """The requested state, the state in the record, whether it was proved, and the proof or the reason why
    there is none.
    """

    wanted: State
    state: str
    proved: bool
    why: str

    def extra(self, seen: Evidence | None = None) -> dict[str, Any]:
        """Fields for `extra` of the record."""
        fields: dict[str, Any] = {"state": self.state, "state_proved": self.proved, "state_proof": self.why}
        if self.state == UNKNOWN:
            fields[STATE_WANTED] = self.wanted
        if seen and seen.resident is not None:
            fields["resident_before"] = round(seen.resident, 4)
        if seen and seen.fetched is not None:
            fields |= {"fetched_bytes": seen.fetched, "fetched_by": seen.counter}
        return fields


def judge_random(seen: Evidence) -> Judgement:
    """Judge whether blocks at random places were read with nothing of the file in this node's cache at first.

    The fetched bytes prove nothing here: read-ahead fetches more, and a block that is read twice is fetched
    once.
    """
    if seen.resident is None:
        return Judgement("cold", "cold", False, "residency cannot be seen on this file system")
    if seen.resident > 0:
        why = f"{seen.residency} contradicts cold: nothing of the file should have been resident"
        return Judgement("cold", UNKNOWN, False, why)
    return Judgement("cold", "cold", True, f"{seen.residency}, before the first block")


def judge(state: State, seen: Evidence) -> Judgement:
    """Whether the evidence proves the state, contradicts it, or does neither."""
    warm = state == "warm_here"
    if seen.resident is not None and (seen.resident < _WHOLE if warm else seen.resident > 0):
        wanted = (
            "all of the file should have been resident"
            if warm
            else "nothing of the file should have been resident"
        )
        return Judgement(state, UNKNOWN, False, f"{seen.residency} contradicts {state}: {wanted}")
    if seen.fetched is not None:
        share = seen.fetched / max(1, seen.requested)
        if share > _NONE if warm else share < _WHOLE:
            wanted = "nothing should have been fetched" if warm else "the whole file should have been fetched"
            return Judgement(state, UNKNOWN, False, f"{seen.counter} contradicts {state}: {wanted}")
    if seen.resident is None:
        return Judgement(state, state, False, "residency cannot be seen on this file system")
    if seen.fetched is None:
        return Judgement(
            state, state, False, f"{seen.residency} agrees, but nothing counts the bytes that were fetched"
        )
    return Judgement(state, state, True, f"{seen.residency} and {seen.counter}")
