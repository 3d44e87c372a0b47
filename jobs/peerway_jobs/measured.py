"""What was measured of a run: the samples of its cores, GPUs and steps, joined through its intervals.

A set of series has a name such as `gpu.utilization`: the kind of device, and the metric without kind and
unit. Counters become rates per second. The figures of a run's steps are summed for each node, so a `step` set
has one series per node; they are 0 while the agent measured the node and no step was there. Figures of a
whole node (node, nic, filesystem) belong to the run only if no other job was there; otherwise these sets have
no data. `fabric` is the InfiniBand ports among the NICs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from peerway_jobs.device_series import Devices, added, pauses_of, series_of, summed, uncovered, within_node
from peerway_jobs.metrics import KINDS, METRICS, Metric
from peerway_jobs.series import Series
from peerway_jobs.store.chunk import Points
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.parts import Part
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Key, Samples

Held = tuple[str, str, float, float]  # node, device, from, to (s since 1970)

_SHARED = frozenset(("node", "nic", "filesystem", "fabric"))
_UNITS = (
    "seconds",
    "bytes",
    "ratio",
    "watts",
    "joules",
    "celsius",
    "hertz",
)  # units of counted things stay in the name
_OF_ALL_STEPS = frozenset(  # reported for every step: if there is no step, they are 0, not unknown
    ("cpu_user_seconds_total", "cpu_system_seconds_total", "memory_bytes", "processes", "threads",
     "running_processes", "blocked_processes")
)  # fmt: skip
_SUSPENDED = "step_suspended_ratio"
_ALIVE = "node_memory_total_bytes"  # the agent reports it in each batch, so it shows when the agent ran
_LEAD_MS = 120_000  # read before the start: a counter's rate needs the value before
_TOGETHER_MS = 3 * 3_600_000  # of all kinds of device at once; more would be too much at once


def _short(metric: Metric) -> str:
    name = metric.name.removeprefix(f"{metric.kind}_").removesuffix("_total")
    if metric.unit in _UNITS:
        name = name.removesuffix(f"_{metric.unit}")
    return f"{metric.kind}.{name}"


SETS: dict[str, Metric] = {_short(metric): metric for metric in METRICS.values() if metric.kind != "disk"}
assert len(SETS) == sum(metric.kind != "disk" for metric in METRICS.values())  # names are unique
SETS |= {f"fabric.{name[4:]}": metric for name, metric in SETS.items() if name.startswith("nic.")}
SUMS = {
    "step.cpu": ("step.cpu_user", "step.cpu_system"),
    "nic.bytes": ("nic.received", "nic.sent"),
    "fabric.bytes": ("fabric.received", "fabric.sent"),
    "filesystem.bytes": ("filesystem.read", "filesystem.written"),
}
SETS |= {name: SETS[parts[0]] for name, parts in SUMS.items()}


class Measured(Mapping[str, Devices | None]):
    """The sets of a run, each read when it is first used; None if no sample of it exists."""

    def __init__(
        self, run: Run, jobs: JobStore, samples: Samples, now: float, only: Iterable[str] | None = None
    ) -> None:
        """`now` ends a run that is still going; `only` are the sets that will be used, None for all. A set
        beyond these is read when it is used.
        """
        names = None if only is None else [part for name in only for part in SUMS.get(name, (name,))]
        self._metrics = None if names is None else frozenset(SETS[name].name for name in names)
        self.run, self.now = run, now
        self._jobs, self._samples = jobs, samples
        self._kinds: dict[str, dict[tuple[str, str], dict[str, Points]]] = {}
        self._sets: dict[str, Devices | None] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._held: dict[str, list[Held]] = {}
        self._nodes: dict[str, dict[str, dict[Key, Points]] | None] = {}

    def __getitem__(self, name: str) -> Devices | None:
        """The set of this name. Raises KeyError if no metric has this name."""
        if name in SUMS and name not in self._sets:
            parts = [self[each] for each in SUMS[name]]
            self._sets[name] = summed([each for each in parts if each is not None])
        if name not in self._sets:
            metric, kind = SETS[name], name.partition(".")[0]
            series = self._read(kind, metric)
            self._sets[name] = tuple(series) if any(each.times.size for each in series) else None
        return self._sets[name]

    def __iter__(self) -> Iterator[str]:
        """All possible names."""
        return iter(SETS)

    def __len__(self) -> int:
        """The number of possible names."""
        return len(SETS)

    @cached_property
    def intervals(self) -> list[Part]:
        """The run's allocations and steps; an open interval ends now."""
        return self._jobs.intervals(self.run)

    @cached_property
    def alone(self) -> bool:
        """Whether no other job was on its nodes while it ran."""
        return not any(
            self._jobs.neighbours(part["node"], self.run.job, part["start"], part["end"])
            for part in self.intervals
            if part["step"] is None
        )

    @cached_property
    def bound(self) -> bool:
        """Whether its processes are restricted to the cores that Slurm gave it.

        If they may run on more cores, those cores are not its own, and their activity may be that of other
        jobs.
        """
        cores: defaultdict[str, set[int]] = defaultdict(set)
        for part in self.intervals:
            if part["step"] is None:
                cores[part["node"]].update(part["cores"] or [])
        return not self.run.cores or sum(map(len, cores.values())) <= self.run.cores

    def held(self, kind: str) -> list[Held]:
        """The devices of a kind that the run held, and when."""
        if kind not in self._held:
            self._held[kind] = self._devices(kind)
        return self._held[kind]

    def _devices(self, kind: str) -> list[Held]:
        held: list[Held] = []
        for part in self.intervals:
            start, end = part["start"] / 1000, min(part["end"] / 1000, self.now)
            if part["step"] is not None:
                names = [str(part["slot"])] if kind == "step" else []
            elif kind == "gpu":
                names = part["gpus"]
            elif kind == "core":
                names = [str(core) for core in part["cores"] or []] if self.bound else []
            elif kind in _SHARED:
                names = self._shared(kind, part["node"])
            else:
                names = []
            held += [(part["node"], name, start, end) for name in names]
        return held

    def labels(self, kind: str) -> list[str]:
        """The names of these devices on a page, in the order of a set's series."""
        if kind == "step":
            return sorted({node for node, *_ in self.held(kind)})
        return [f"{node} {device}" for node, device, *_ in self.held(kind)]

    @property
    def unreadable(self) -> list[str]:
        """The files that have more of its samples than can be read, as far as they were read."""
        names: set[str] = set()
        for part in self.intervals:
            names.update(self._samples.unreadable(part["node"], part["start"] - _LEAD_MS, part["end"]))
        return [f"samples/{name}" for name in sorted(names)]

    # -- reading

    def _shared(self, kind: str, node: str) -> list[str]:
        facts = self._facts_of(node)
        if kind in ("nic", "fabric"):
            names = facts.get("nics", [])
            return [name for name in names if kind == "nic" or name.startswith("ib:")]
        return ["node"] if kind == "node" else facts.get("filesystems", []) if kind == "filesystem" else []

    def _read(self, kind: str, metric: Metric) -> list[Series]:
        if kind in _SHARED and not self.alone:
            return []
        of_kind = KINDS_READ.get(kind, kind)
        if self._metrics is not None and metric.name not in self._metrics:
            self._metrics |= {metric.name}
            self._nodes.clear()
            self._kinds.pop(of_kind, None)
        if of_kind not in self._kinds:
            self._kinds[of_kind] = self._load(of_kind)
        held = self.held(kind)
        series = [
            self._bounded(
                node,
                metric,
                series_of(metric, self._kinds[of_kind].get((node, device), {}).get(metric.name), start, end),
            ).without(self._pauses.get(node, ()))
            for node, device, start, end in held
        ]
        if kind != "step":
            return series
        nodes: defaultdict[str, list[Series]] = defaultdict(list)
        for (node, *_), each in zip(held, series, strict=True):
            nodes[node].append(each)
        if metric.name.removeprefix("step_") in _OF_ALL_STEPS:
            for node, empty in self._without_steps.items():
                nodes[node].append(empty)
        return [added(several, *self._span(node)) for node, several in sorted(nodes.items())]

    def _bounded(self, node: str, metric: Metric, series: Series) -> Series:
        """The series without values that the node cannot have, such as those of a counter that jumped."""
        if metric.kind not in ("step", "core"):
            return series
        facts = self._facts_of(node)
        values = within_node(metric, series.values, facts.get("cpus"), facts.get("memory_bytes"))
        known = ~np.isnan(values)
        return replace(series, times=series.times[known], values=values[known])

    def _facts_of(self, node: str) -> dict[str, Any]:
        if node not in self._facts:
            self._facts[node] = self._jobs.facts(node)
        return self._facts[node]

    @cached_property
    def _without_steps(self) -> dict[str, Series]:
        """Zeros for the times at which a node of the run was measured but had none of its steps.

        A script without srun leaves all nodes but the first like this, and so does salloc while nobody types.
        """
        period = self._jobs.period()
        steps: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for node, _, start, end in self.held("step"):
            steps[node].append((start, end + period))
        zeros: dict[str, Series] = {}
        for node in {part["node"] for part in self.intervals if part["step"] is None}:
            start, end = self._span(node)
            if not uncovered(start, end, steps[node]) > 2 * period:
                continue
            read = self._samples.read(
                node, "node", int(start * 1000), int(end * 1000) + 1, ["node"], [_ALIVE]
            )
            points = read.get(("node", _ALIVE))
            if points is None:
                continue
            times = points.times / 1000
            for first, last in steps[node]:
                times = times[(times < first) | (times > last)]
            if times.size:
                empty = Series(start, end, points.period / 1000, times, np.zeros(times.size))
                zeros[node] = empty.within(start, end).without(self._pauses.get(node, ()))
        return zeros

    @cached_property
    def _pauses(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """When the run was suspended, by node.

        Slurm says whether it was suspended, and agents say when. Stopped processes alone do not count: users
        may stop their own processes, and then still hold what they do not use. Samples that begin or end
        within a pause belong to it, because nothing is known about the rest of their time.
        """
        if not self.run.suspended and self.run.state != "SUSPENDED":
            return {}
        steps: defaultdict[str, list[Held]] = defaultdict(list)
        for each in self.held("step"):
            steps[each[0]].append(each)
        pauses = {}
        for node, several in steps.items():
            start, end = self._span(node)
            slots = {slot for _, slot, *_ in several}
            ms = int(start * 1000) - _LEAD_MS, int(end * 1000) + 1000
            read = self._samples.read(node, "step", *ms, slots, [_SUSPENDED])
            parts = []
            for _, slot, first, last in several:
                points = read.get((slot, _SUSPENDED))
                if points is not None:
                    inside = (points.times / 1000 > first) & (points.times / 1000 <= last)
                    parts.append((points.times[inside] / 1000, points.values[inside]))
            pauses[node] = pauses_of(parts, start, end)
        return pauses

    def _span(self, node: str) -> tuple[float, float]:
        """The time (from, to) in which the run had the node."""
        parts = [part for part in self.intervals if part["node"] == node and part["step"] is None]
        parts = parts or [part for part in self.intervals if part["node"] == node]
        return (
            min(part["start"] for part in parts) / 1000,
            min(max(part["end"] for part in parts) / 1000, self.now),
        )

    def _load(self, kind: str) -> dict[tuple[str, str], dict[str, Points]]:
        nodes: defaultdict[str, list[Held]] = defaultdict(list)
        for each in self.held(kind):
            nodes[each[0]].append(each)
        points_of: defaultdict[tuple[str, str], dict[str, Points]] = defaultdict(dict)
        for node, several in nodes.items():
            start = int(min(each[2] for each in several) * 1000) - _LEAD_MS
            end = int(max(each[3] for each in several) * 1000) + 1000
            names = {each[1] for each in several}
            read = self._read_together(node)
            of_kind = read[kind] if read else self._samples.read(node, kind, start, end, names, self._metrics)
            for (device, metric), points in of_kind.items():
                points_of[node, device][metric] = points
        return points_of

    def _read_together(self, node: str) -> dict[str, dict[Key, Points]] | None:
        """All samples of a node while a short run had it; None if kinds are to be read one by one."""
        if not self._samples.reads_together:
            return None
        if node not in self._nodes:
            parts = [part for part in self.intervals if part["node"] == node]
            start = min(part["start"] for part in parts) - _LEAD_MS
            end = min(max(part["end"] for part in parts), int(self.now * 1000)) + 1000
            short = end - start <= _TOGETHER_MS
            read = self._samples.read_node
            self._nodes[node] = read(node, start, end, self._metrics) if short else None
        return self._nodes[node]


KINDS_READ = {"fabric": "nic"}
assert {name.partition(".")[0] for name in SETS} <= {*KINDS, *KINDS_READ}
