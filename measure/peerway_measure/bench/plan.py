"""The list of cases of a benchmark run as plain data. It is made before the ranks start, and they read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from peerway_measure.bench import shapes
from peerway_measure.bench.collective_choice import Collective
from peerway_measure.bench.kinds import KINDS, TestKind
from peerway_measure.bench.shapes import Shape

SIGNAL_BYTES = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One test of one shape between two kinds of memory.

    `pairs` are the pairs of ranks (leader, follower) that run at once; it is empty if all ranks run together.
    """

    test: str
    shape: Shape
    source: str
    target: str
    pairs: tuple[tuple[int, int], ...]
    samples: int = 0  # number of samples to take; 0: as many as fit the time

    @property
    def kind(self) -> TestKind:
        """The test's kind, which says what it does."""
        return KINDS[self.test]


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to measure the cases: a label for the records, the paths that it may take, and those among them
    without which the label would not be true. Both lists are names with commas between.
    """

    label: str
    paths: str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one start of the ranks measures.

    Each case is measured over each of the `settings`; if there are none, over every available path and the
    route. With `route` off, only single paths are measured: not the route, and instead of a group its
    members. `staging_chunks` are the chunk sizes with which `staged` is measured, instead of its default.
    With `explain` (classes of shapes) nothing is measured, and the decisions for the cases are reported; with
    `collective` instead those between its methods, whose sends are the cases.
    `policy` is the wait policy of these ranks, for tests that distinguish policies.

    `known` are the fields of a record that are the same for all. `recorded` counts the records of all runs
    that exist already (resume.py); `run` is the number of this run. `files` are the contents of the files
    that settings name, by the setting's variable. If `ends` is given (seconds since 1970), the cases divide
    the time until then, and `budget_s` does not apply. `launch` are the options of `peerway run` that name
    the hosts.
    """

    ranks: int
    cases: list[Case]
    settings: list[Setting] = field(default_factory=list)
    budget_s: float = 0.2
    timeout_s: float = 60
    limits: bool = True
    route: bool = True
    staging_chunks: list[int] = field(default_factory=list)
    explain: list[str] = field(default_factory=list)
    collective: Collective | None = None
    policy: str = ""
    known: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    run: int = 0
    files: dict[str, str] = field(default_factory=dict)
    ends: float = 0
    launch: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        """The plan as text for the ranks."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan of a text from as_json()."""
        values = json.loads(text)
        values["cases"] = [_case(**case) for case in values["cases"]]
        values["settings"] = [Setting(**setting) for setting in values["settings"]]
        values["collective"] = values["collective"] and Collective(**values["collective"])
        return cls(**values)


def _case(shape: dict[str, int | str], pairs: list[list[int]], **rest: Any) -> Case:
    return Case(shape=Shape(**shape), pairs=tuple((a, b) for a, b in pairs), **rest)  # type: ignore[arg-type]


def same_kind(memories: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that have the same kind of memory on both sides. Plans need this."""
    return [(source, target) for source, target in memories if source == target]


def pairs_for(kind: TestKind, ranks: int) -> tuple[tuple[int, int], ...]:
    """The pairs of ranks of a test: rank i of the lower half leads rank i of the upper half. Only the first
    pair, unless the test is of all pairs. None for a test of all ranks together.
    """
    if kind.loop == "halo":
        return ()
    half = ranks // 2
    return tuple((rank, rank + half) for rank in range(half if kind.all_pairs else 1))


def make_cases(
    tests: Sequence[str],
    sizes: Iterable[int],
    labels: Sequence[str],
    cubes: Iterable[int],
    memories: Sequence[tuple[str, str]],
    ranks: int,
    own: Mapping[str, Sequence[Shape]] | None = None,
) -> list[Case]:
    """All cases of the requested tests. `sizes` are for contiguous shapes, `cubes` for the faces of the cube
    test, `own` for tests with shapes of their own.
    """
    sizes, cubes = list(sizes), list(cubes)
    faces = [shapes.face(n, across) for n in cubes for across in "ijk"]
    others = [shapes.of_label(label) for label in labels if label != "contiguous"]
    cases = []
    for test in tests:
        kind = KINDS[test]
        if test == "cube":
            forms = faces
        elif own and test in own:
            forms = list(own[test])
        elif not kind.sized:
            forms = [shapes.contiguous(SIGNAL_BYTES)]
        else:
            forms = [shapes.contiguous(size) for size in sizes] if "contiguous" in labels else []
            forms += others if kind.strided else []
        for source, target in same_kind(memories) if kind.by_methods or not kind.by_paths else memories:
            cases += [Case(test, form, source, target, pairs_for(kind, ranks)) for form in forms]
    return cases
