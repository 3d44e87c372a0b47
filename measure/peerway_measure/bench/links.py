"""The memory that a rank measures with, and its links to its partners: regions, imported keys, signals, timed
loops.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peerway import _core
from peerway.context import Context
from peerway.errors import Error, Unsupported
from peerway.memory import Region, Remote, Signal
from peerway.paths import PathInfo
from peerway_measure.bench import collective_choice
from peerway_measure.bench.collective_choice import Collective
from peerway_measure.bench.plan import Case

SMALLEST = 1 << 20  # bytes of the smallest allocation
# The deadline of an exchange while another rank may still take samples. Operations have their own limits, and
# a rank that has ended is noticed at once.
EXCHANGE_S = 3600

Pairs = Sequence[tuple[int, int]]


class CaseFailed(Exception):
    """A case failed on one rank, and all ranks agreed to skip it and to go on with the next."""


def agree(context: Context, error: str) -> None:
    """Exchange what went wrong on each rank, if anything. Raises CaseFailed with the first error, on all
    ranks.
    """
    for rank, text in enumerate(context.team.all_gather(error.encode(), EXCHANGE_S)):
        if text:
            raise CaseFailed(text.decode() + (f" (rank {rank})" if context.size > 1 else ""))


@dataclass(slots=True)
class Link:
    """This rank's end of a pair, ready to be timed. On a rank outside the pair only the two devices
    are set.
    """

    partner: int = -1
    leads: bool = False
    source: str = ""  # the devices between which the first pair puts
    target: str = ""
    got_source: str = ""  # the devices between which its leader gets
    got_target: str = ""
    far_source: Remote | None = None
    far_target: Remote | None = None
    loops: _core.Pair | None = None
    plans: _core.Pair | None = None  # the same ends, with signals for plans and kernels
    signals: list[Signal | Remote] = field(default_factory=list)

    def close(self) -> None:
        """Releases everything except the memory."""
        self.loops = self.plans = None
        for part in (self.far_source, self.far_target, *self.signals):
            if part is not None:
                part.close()


class Links:
    """Source and target memory of each kind, which grows as needed, and the links between them. All methods
    are collective.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._memory: dict[tuple[str, str], Region] = {}
        self._links: dict[tuple[str, str, tuple[tuple[int, int], ...]], Link] = {}

    def memory(self, kind: str, role: str) -> Region:
        """The region of this kind ("host", "host:malloc", "cuda", "hip") that serves as `role`, "source" or
        "target".
        """
        return self._memory[kind, role]

    def reserve(self, source: str, target: str, size: int) -> None:
        """Make source and target at least `size` bytes large. Raises CaseFailed if a rank cannot."""
        wanted = [(source, "source"), (target, "target")]
        short = [key for key in wanted if key not in self._memory or self._memory[key].bytes < size]
        if not short:
            return
        self.drop()
        error = ""
        try:
            for key in short:
                if key in self._memory:
                    self._memory.pop(key).close()
                self._memory[key] = self._allocate(key[0], max(SMALLEST, 1 << (size - 1).bit_length()))
        except (Error, MemoryError) as failure:
            error = str(failure) or f"out of memory for {size} bytes of {key[0]}"
        agree(self._context, error)

    def link(self, source: str, target: str, pairs: Pairs) -> Link:
        """This rank's link between memories that were reserved."""
        key = (source, target, tuple(pairs))
        if key not in self._links:
            self._links[key] = self._connect(*key)
        return self._links[key]

    def for_plans(self, source: str, target: str, pairs: Pairs) -> _core.Pair | None:
        """The ends of a link for plans and kernels, or None on a rank outside the pair. Collective.

        The signals lie in the memory of the receiving GPU if GPUs reach them over a path of their own.
        Otherwise they are those of the link.
        """
        link, device = self.link(source, target, pairs), self._memory[target, "target"].device
        if device != "host" and link.plans is None:
            paths = self.paths(source, target, pairs, "put")
            if any(path.available and path.name.startswith("peer/") for path in paths):
                link.plans = self._signalled(link, source, target, device)
        return link.plans or link.loops

    def drop(self) -> None:
        """Forget all links, because their signals may be out of step after a failure, or their memory is
        about to be freed.
        """
        for link in self._links.values():
            link.close()
        self._links.clear()

    def paths(self, source: str, target: str, pairs: Pairs, op: str) -> list[PathInfo]:
        """Every path; it is available only if every rank of the pairs can use it. The same on all ranks."""
        link = self.link(source, target, pairs)
        mine: list[PathInfo] = []
        if link.far_source is not None and link.far_target is not None:
            remote, near = (link.far_source, "target") if op == "get" else (link.far_target, "source")
            mine = self._context.paths(remote, self._memory[target if op == "get" else source, near], op)
        merged: dict[str, PathInfo] = {}
        for text in self._context.team.all_gather(json.dumps(mine).encode(), EXCHANGE_S):
            for info in (PathInfo(*path) for path in json.loads(text)):
                if info.name not in merged or (merged[info.name].available and not info.available):
                    merged[info.name] = info
        return list(merged.values())

    def explained(self, case: Case, link: Link) -> dict[str, Any]:
        """The route's decision for a case, as this rank sees it; empty on a rank outside the pair, or without
        paths.
        """
        if link.far_source is None:
            return {}
        try:
            return self.decision(case, link, _core.shape_class(case.shape.blocks, case.shape.block_bytes))
        except Unsupported:  # the case is refused when it is run
            return {}

    def decision(self, case: Case, link: Link, shape: str) -> dict[str, Any]:
        """The route's decision for a class of shapes, on a rank of the pair. Raises Unsupported if there is
        no path.
        """
        assert link.far_source is not None
        assert link.far_target is not None
        op = case.kind.routed_op
        if op == "get":
            remote, near = link.far_source, self._memory[case.target, "target"]
        else:
            remote, near = link.far_target, self._memory[case.source, "source"]
        decision = json.loads(_core.explain_for(self._context._core, remote._core, near._core, op, shape))
        assert isinstance(decision, dict)
        return decision

    def collective_decision(self, case: Case, link: Link, collective: Collective) -> dict[str, Any]:
        """Which method a collective would use whose ranks send as in this case, on a rank of the pair."""
        assert link.far_target is not None
        estimates = _core.collective_estimates(
            self._context._core,
            link.far_target._core,
            self._memory[case.source, "source"]._core,
            collective_choice.KIND_NUMBERS[collective.kind],
            collective_choice.ORDERS.index(collective.order),
            collective.ranks,
        )
        of_sends = self.decision(case, link, "contiguous")
        return {
            **of_sends,
            "op": collective.title,
            "rows": list(collective_choice.rows(estimates)),
            "unavailable": [],
        }

    def chosen(self, case: Case, link: Link) -> str:
        """The path that the route chooses for a case on this rank; "" on a rank that takes no part."""
        rows = self.explained(case, link).get("rows", []) if case.kind.sized else []
        ends = ((row["to"] or float("inf"), str(row["via"])) for row in rows)
        return next((via for end, via in ends if case.shape.bytes < end), "")

    def _allocate(self, kind: str, size: int) -> Region:
        if kind == "host:malloc":
            return self._context.register(np.zeros(size, np.uint8))
        return self._context.allocate(kind, size)

    def _connect(self, source: str, target: str, pairs: Pairs) -> Link:
        context, link = self._context, Link()
        partners = dict(pairs) | {b: a for a, b in pairs}
        near_source, near_target = self._memory[source, "source"], self._memory[target, "target"]
        mine: dict[str, list[str]] = {"devices": [near_source.device, near_target.device], "keys": []}
        if context.rank in partners:
            link.partner = partners[context.rank]
            link.leads = (context.rank, link.partner) in pairs
            mine["keys"] = [part.key().hex() for part in (near_source, near_target)]
        answers = [
            json.loads(text) for text in context.team.all_gather(json.dumps(mine).encode(), EXCHANGE_S)
        ]
        first, second = pairs[0]
        link.source = _label(source, answers[first]["devices"][0])
        link.target = _label(target, answers[second]["devices"][1])
        link.got_source = _label(source, answers[second]["devices"][0])
        link.got_target = _label(target, answers[first]["devices"][1])
        if link.partner >= 0:
            imported = [context.import_key(bytes.fromhex(key)) for key in answers[link.partner]["keys"]]
            link.far_source, link.far_target = imported
        link.loops = self._signalled(link, source, target, "host")
        return link

    def _signalled(self, link: Link, source: str, target: str, device: str) -> _core.Pair | None:
        """The ends of a link, with new signals in the memory of a device. Collective."""
        context, mine = self._context, None
        if link.partner >= 0:
            mine = context.signal(link.partner, device)
        keys = context.team.all_gather(b"" if mine is None else mine.key(), EXCHANGE_S)
        pair = None
        if mine is not None:
            assert link.far_source is not None
            assert link.far_target is not None
            far = context.import_key(keys[link.partner])
            link.signals += [mine, far]
            near_source, near_target = self._memory[source, "source"], self._memory[target, "target"]
            pair = _core.Pair(
                context._core, near_source._core, near_target._core, link.far_source._core,
                link.far_target._core, mine._core, far._core, link.leads,
            )  # fmt: skip
        agree(context, "")
        return pair


def _label(kind: str, device: str) -> str:
    """The name of a memory in records: the GPU with its number; "host:malloc" differs from "host"."""
    return kind if device == "host" else device
