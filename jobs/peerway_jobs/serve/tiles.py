"""Which nodes the cluster's page shows, how it groups them, and whether as tiles or as small squares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

MOST_FULL = 96  # nodes that are shown as tiles with all their figures; more are squares
MOST_SQUARES = 5000  # nodes on one page
# The name without its last number, if it has another number before: r12 of r12n03.
RACKS = r"^(.*?\d+)\D+\d+$"
Size = Literal["", "tiles", "squares"]
Grouping = Literal["", "rack", "type", "partition", "state", "none"]
Node = dict[str, Any]


class BadPattern(ValueError):
    """A pattern of racks cannot be used."""


@dataclass(frozen=True)
class Choice:
    """Which nodes are wanted; an empty value selects all."""

    text: str = ""  # part of the name, of its GPUs' type, of the reason, or of a user or a job there
    state: str = ""
    node_type: str = ""
    partition: str = ""
    rack: str = ""

    @property
    def is_any(self) -> bool:
        """Whether all nodes are wanted."""
        return self == Choice()


@dataclass(frozen=True)
class Group:
    """Nodes under one heading; `by` says of what kind the heading is."""

    by: str
    name: str
    nodes: list[Node]

    def count(self, figure: str) -> float:
        """A sum over its nodes that are not off."""
        return float(sum(node[figure] for node in self.nodes if node["state"] != "off"))


def rack_pattern(text: str) -> re.Pattern[str]:
    """The pattern by which racks are recognised. Raises BadPattern."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise BadPattern(f"{text!r} is no regular expression: {error}") from None
    if text and pattern.groups != 1:
        raise BadPattern(f"{text!r} has {pattern.groups} groups; one, such as in '^(r[0-9]+)', is the rack")
    return pattern


@lru_cache(1 << 14)
def rack_of(name: str, pattern: re.Pattern[str]) -> str:
    """The rack in a node's name; empty if the name has none."""
    match = pattern.search(name) if pattern.pattern else None
    return match[1] or "" if match else ""


def chosen(
    nodes: Iterable[Node], choice: Choice, on: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Node]:
    """The nodes that are wanted. `on` has the jobs on each node that the viewer may see."""
    text = choice.text.casefold()

    def fits(node: Node) -> bool:
        if choice.partition and choice.partition not in node["partitions"]:
            return False
        for name in ("state", "node_type", "rack"):
            wanted = getattr(choice, name)
            if wanted and node[name] != wanted:
                return False
        jobs = (str(job[name]) for job in on.get(node["name"], ()) for name in ("user", "job", "array"))
        return not text or any(
            text in each.casefold() for each in (node["name"], node["gpu_type"], node["reason"], *jobs)
        )

    return [node for node in nodes if fits(node)]


def grouped(nodes: Sequence[Node], by: Grouping) -> list[Group]:
    """The nodes in groups, in the order of their nodes; without a grouping by racks, else by types.

    A node of several partitions is in the group of its first.
    """
    kind = by or next((each for each in ("rack", "type") if _is_useful(nodes, _KEYS[each])), "none")
    groups: defaultdict[str, list[Node]] = defaultdict(list)
    key = _KEYS[kind]
    for node in nodes:
        groups[key(node)].append(node)
    return [Group(kind, name, several) for name, several in groups.items()]


_KEYS: dict[str, Callable[[Node], str]] = {
    "rack": lambda node: str(node["rack"]),
    "type": lambda node: str(node["node_type"]),
    "partition": lambda node: str(next(iter(node["partitions"]), "")),
    "state": lambda node: str(node["state"]),
    "none": lambda _: "",
}


def _is_useful(nodes: Sequence[Node], key: Callable[[Node], str]) -> bool:
    return 1 < len({key(node) for node in nodes}) <= len(nodes) / 2


def use_of(node: Node) -> float | None:
    """The measured use of a node's GPUs, or of its cores if it has none; None without a figure."""
    now = node.get("now") or {}
    uses = [use for _, use in now.get("gpus", ()) if use is not None]
    if uses:
        return min(1.0, float(sum(uses)) / len(uses))
    cpu: float | None = now.get("cpu") if not node["gpus"] else None
    return cpu


def choices(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """What the page offers to select by."""
    several = list(nodes)
    return {
        "type": sorted({node["node_type"] for node in several} - {""}),
        "partition": sorted({name for node in several for name in node["partitions"]}),
    }
