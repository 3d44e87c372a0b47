"""How many hours a change frees: the model that docs/measure/worth.md describes.

The share of an application's run time that is saved is a sum over its transfers. Its uncertainty is
propagated by drawing speed-ups from their intervals, and the mean of the traces from Student's distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.printable import shell_word
from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.csv_file import BadFile
from peerway_measure.worth.shares import Share, Stated, Traces, Transfer
from peerway_measure.worth.speedups import Match, SpeedUp, match

DRAWS = 10_000
_SEED = 20261128
_QUANTILE = 1.959964  # of the normal distribution: 95 % lie within so many standard deviations
_CAMPAIGNS = "peerway campaign run before, and after the change peerway campaign run after"
_MOST_REASONS = 3  # transfers that the reason for an unknown row names


@dataclass(frozen=True, slots=True)
class Gain:
    """The share of the run time that is saved. `value` is None where it is unknown, `draws` where its
    interval is. `measured` is the share of the run time in transfers with a known speed-up.
    """

    value: float | None = None
    draws: NDArray[Any] | None = None
    measured: float | None = None
    unmeasured: float = 0.0
    traces: int = 0
    problem: str = ""
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    untraced: bool = False


class Draws:
    """The random numbers, the same in each run of the program."""

    def __init__(self, assumed: Assumptions) -> None:
        self._together = assumed.errors == "together"
        self._normal: dict[object, NDArray[Any]] = {}
        self._generator = np.random.default_rng(_SEED)

    def error(self, key: object) -> NDArray[Any]:
        """Standard normal numbers; the same for the same key."""
        if key not in self._normal:
            self._normal[key] = self._generator.standard_normal(DRAWS)
        return self._normal[key]

    def of(self, speedup: SpeedUp) -> NDArray[Any]:
        """Draws of the logarithm of a speed-up."""
        return between(
            speedup.value, speedup.low, speedup.high,
            self.error(speedup.node_type if self._together else speedup),
        )  # fmt: skip

    def mean(self, values: NDArray[Any]) -> NDArray[Any]:
        """Draws of the mean of the samples along the first axis, in each draw of the second."""
        from scipy import stats

        count = len(values)
        t = stats.t.rvs(count - 1, size=DRAWS, random_state=self._generator)
        drawn = values.mean(axis=0) + values.std(axis=0, ddof=1) / np.sqrt(count) * t
        return np.asarray(np.minimum(drawn, 1.0))


def between(value: float, low: float, high: float, error: NDArray[Any]) -> NDArray[Any]:
    """A normal distribution on each side of `value`, with 95 % of all between `low` and `high`."""
    width = np.where(error < 0, value - low, high - value) / _QUANTILE
    return np.asarray(value + width * error)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the gains are computed from; a part that was not given is None."""

    speedups: Sequence[SpeedUp] | None
    shares: Mapping[tuple[str, str], Traces]
    stated: Mapping[tuple[str, str], Stated]


def gains(
    pairs: Sequence[tuple[str, str]], inputs: Inputs, assumed: Assumptions
) -> dict[tuple[str, str], Gain]:
    """The gain of each application on each node type. Raises BadFile."""
    draws = Draws(assumed)
    return {pair: _gain(*pair, inputs, assumed, draws) for pair in dict.fromkeys(pairs)}


def _gain(application: str, node_type: str, inputs: Inputs, assumed: Assumptions, draws: Draws) -> Gain:
    stated = inputs.stated.get((application, node_type)) or inputs.stated.get((application, ""))
    traces = _traces_of(application, node_type, inputs.shares, assumed)
    if stated and traces:
        raise BadFile(
            f"{application} on {node_type} has shares and a stated figure, which would count twice; "
            "delete one of the two"
        )
    if stated:
        return _of_stated(stated, draws.error((application, "stated")))
    if not application or not traces:
        return _untraced(application, node_type, inputs.shares)
    if inputs.speedups is None:
        shares = np.mean([sum(s.share for s in several) for several in traces.values()])
        return Gain(unmeasured=float(shares), traces=len(traces),
                    problem="no records of before and after the change",
                    commands=(_CAMPAIGNS,))  # fmt: skip
    return _of_traces(node_type, traces, inputs.speedups, assumed, draws)


def _traces_of(
    application: str, node_type: str, shares: Mapping[tuple[str, str], Traces], assumed: Assumptions
) -> Traces:
    """The traces that stand for an application on a node type."""
    of_types = {kind: traces for (name, kind), traces in shares.items() if name == application}
    own = {kind: traces for kind, traces in of_types.items() if kind in ("", node_type)}
    chosen = own if own or assumed.traces == "own-type" else of_types
    return {f"{kind}/{name}": several for kind, traces in chosen.items() for name, several in traces.items()}


def _untraced(application: str, node_type: str, shares: Mapping[tuple[str, str], Traces]) -> Gain:
    if not application:
        return Gain(problem="the usage names no application", untraced=True,
                    commands=("peerway jobs usage --application NAME='PATTERN'",))  # fmt: skip
    elsewhere = sorted({kind for name, kind in shares if name == application})
    problem = f"it was traced only on {', '.join(elsewhere)}" if elsewhere else "it was not traced"
    kind = f" --node-type {shell_word(node_type)}" if node_type else ""
    shares_of = f"peerway trace shares DIR --application {shell_word(application)}{kind} -o FILE"
    return Gain(problem=problem, commands=("peerway trace -o DIR -- COMMAND", shares_of), untraced=True)


def _of_stated(stated: Stated, error: NDArray[Any]) -> Gain:
    if stated.low is None or stated.high is None:
        return Gain(stated.less_time, notes=("stated without bounds, so its interval is unknown",))
    drawn = between(stated.less_time, stated.low, stated.high, error)
    return Gain(stated.less_time, np.minimum(drawn, 1.0), notes=("stated",))


def _of_traces(
    node_type: str, traces: Traces, known: Sequence[SpeedUp], assumed: Assumptions, draws: Draws
) -> Gain:
    matches = {share.transfer: match(share.transfer, node_type, known, assumed)
               for several in traces.values() for share in several}  # fmt: skip
    samples = [[(_length(s, assumed), matches[s.transfer]) for s in several] for several in traces.values()]
    measured, unmeasured = (
        float(np.mean([sum(length for length, m in several if bool(m.parts) is has) for several in samples]))
        for has in (True, False)
    )
    gain = Gain(measured=measured, unmeasured=unmeasured, traces=len(traces))
    lacking = _lacking(traces, matches)
    if unmeasured * 100 > assumed.unmeasured:
        return replace(gain, problem="; ".join(problem for problem, _ in lacking[:_MOST_REASONS]),
                       commands=tuple(dict.fromkeys(c for _, c in lacking if c)))  # fmt: skip
    notes: tuple[str, ...] = ()
    if unmeasured:
        notes = (f"{_percent(unmeasured)} of its time is in transfers without a known speed-up, counted as "
                 f"unchanged: {lacking[0][0]}",)  # fmt: skip
    value = float(np.mean([sum(length * -np.expm1(-m.value) for length, m in s if m.parts) for s in samples]))
    if len(samples) == 1 and assumed.one_trace == "unknown":
        notes += ("traced once, so how much its shares vary is unknown; trace it again (at least twice)",)
        return replace(gain, value=value, notes=notes)
    return replace(gain, value=value, draws=_drawn(samples, draws), notes=notes)


def _length(share: Share, assumed: Assumptions) -> float:
    """The share of the run time that changes with the speed-up."""
    return share.share + (share.waiting if assumed.waits == "shrink" else 0.0)


def _drawn(samples: Sequence[Sequence[tuple[float, Match]]], draws: Draws) -> NDArray[Any]:
    """Draws of the gain: of each trace with drawn speed-ups, and of the mean over the traces."""
    saved: dict[Match, NDArray[Any]] = {}
    of_traces = np.zeros((len(samples), DRAWS))
    for number, several in enumerate(samples):
        for length, matched in several:
            if matched.parts and matched not in saved:
                drawn = sum(weight * draws.of(part) for part, weight in matched.parts)
                saved[matched] = np.asarray(-np.expm1(-drawn))
            if matched.parts:
                of_traces[number] += length * saved[matched]
    return draws.mean(of_traces) if len(samples) > 1 else of_traces[0]


def _lacking(traces: Traces, matches: Mapping[Transfer, Match]) -> list[tuple[str, str]]:
    """Why transfers have no speed-up, and the command that measures it, those with the most time first."""
    lost: dict[tuple[str, str], float] = {}
    for several in traces.values():
        for share in several:
            matched = matches[share.transfer]
            if not matched.parts and share.share + share.waiting:
                key = (matched.problem, matched.command)
                lost[key] = lost.get(key, 0.0) + share.share / len(traces)
    ordered = sorted(lost, key=lambda key: -lost[key])
    return [(f"{problem} ({_percent(lost[problem, command])} of its time)", command)
            for problem, command in ordered]  # fmt: skip


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"
