"""One tuning run: the staging chunk, then every path in every case, then again the sizes around which the
choice changes, then splits. The result is the text of the table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from peerway import _core
from peerway.errors import Unavailable
from peerway_common.units import size_text
from peerway_measure.bench import machine, runner, shapes
from peerway_measure.bench.kinds import SEND
from peerway_measure.bench.plan import Case as BenchCase
from peerway_measure.bench.plan import Plan, Setting
from peerway_measure.bench.results import Results, Step
from peerway_measure.bench.session import SessionFailed
from peerway_measure.bench.time_budget import START_S, within
from peerway_measure.memories import kind_of
from peerway_measure.tune import boundaries, cases, draft, splits
from peerway_measure.tune.draft import Case

QUICK_BUDGET_S, BUDGET_S = 0.02, 0.1
STAGED = "staged"
RANKS = 2
# The share of the remaining time that each part may take. Later parts matter less.
CHUNK_PART, PATHS_PART, BOUNDARIES_PART, SPLIT_PART = 0.1, 0.6, 0.4, 0.2


class Tuner:
    """Measures these memories (kinds, from and to) with two ranks, over these paths or all."""

    def __init__(
        self,
        memories: Sequence[tuple[str, str]],
        paths: Sequence[str],
        quick: bool,
        step: Step,
        ends: float = 0,
        launch: Sequence[str] = (),
    ) -> None:
        self._ends = ends
        self._memories = list(memories)
        self._quick = quick
        self._step = step
        self._plan = Plan(
            RANKS,
            [],
            [Setting(path, path) for path in paths],
            budget_s=QUICK_BUDGET_S if quick else BUDGET_S,
            limits=False,
            route=False,
            known=machine.known(),
            launch=list(launch),
        )
        self.results = Results()

    def run(self) -> str:
        """The text of the new table. Raises SessionFailed if the ranks end before the paths are measured,
        Error if the data is defective.
        """
        only = {setting.paths for setting in self._plan.settings}
        chunk = self._staging_chunk() if not only or STAGED in only else 0
        empty = draft.table({}, [], {}, {}, chunk)
        probes = cases.make(self._memories, cases.all_shapes(self._quick))
        probes.sort(key=lambda case: case.shape.blocks > 1)  # contiguous first: the time may be short
        self._measure(
            replace(self._plan, cases=runner.fits_memory(probes, RANKS, self.results)),
            self.results,
            empty,
            PATHS_PART,
        )
        if not self.results.records:
            self.results.note_unmeasured()
            raise Unavailable("peerway: no path could be measured; " + "; ".join(self.results.notes))
        self._measure_boundaries(empty)
        classes = self.results.pair_classes
        costs = draft.points_of(self.results.records, classes)
        whole = draft.table(costs, [], self.results.paths, classes, chunk)
        large = [
            case
            for case in costs
            if case[0] != SEND and case[1] == "contiguous" and len(costs[case]) > 1  # a send uses one method
        ]
        scales = splits.QUICK_SCALES if self._quick else splits.SCALES
        measured_splits = splits.measured(costs, large, self._measure_split, empty, scales)
        self.results.note_unmeasured()
        return _core.table_text(json.dumps(whole | {"splits": measured_splits}))

    def _staging_chunk(self) -> int:
        """The chunk size with which a large staged put is fastest; 0 if nothing can be staged."""
        source, target = self._memories[-1]
        probes = cases.make([(source, target)], [shapes.contiguous(cases.CHUNK_BYTES)], ["put_latency"])
        plan = replace(
            self._plan, cases=probes, settings=[Setting(STAGED, STAGED)], staging_chunks=cases.CHUNKS
        )
        results = Results()
        self._measure(plan, results, draft.table({}, [], {}, {}, 0), CHUNK_PART)
        best = min(results.records, key=lambda record: record.p50_us, default=None)
        return int(best.extra["chunk"]) if best else 0

    def _measure_boundaries(self, table: dict[str, Any]) -> None:
        """Add the sizes around which the cheapest path for contiguous data changes. Fresh ranks measure them,
        so that the decisive sizes are measured in two runs.
        """
        probes = []
        for case, by_path in draft.points_of(self.results.records, self.results.pair_classes).items():
            if case[1] == "contiguous":
                probes += self._contiguous(case, boundaries.sizes_between(by_path))
        fitting = runner.fits_memory(probes, RANKS, self.results)
        if fitting:
            sizes = sorted({case.shape.bytes for case in fitting})
            name = f"{fitting[0].test} around {size_text(sizes[0])} to {size_text(sizes[-1])}"
            self._refine(name, replace(self._plan, cases=fitting), self.results, table, BOUNDARIES_PART)

    def _contiguous(self, case: Case, sizes: Sequence[int]) -> list[BenchCase]:
        """The benchmark's cases for a case of the table, at these sizes."""
        op, _, pair = case
        classes = self.results.pair_classes.items()
        labels = next(labels for labels, name in classes if name == pair and labels[2] == op)
        memory = (kind_of(labels[0]), kind_of(labels[1]))
        return cases.make([memory], [shapes.contiguous(size) for size in sizes], [f"{op}_latency"])

    def _measure_split(self, case: Case, paths: str, table: dict[str, Any]) -> Results:
        probes = self._contiguous(case, cases.QUICK_SPLIT_SIZES if self._quick else cases.SPLIT_SIZES)
        results = Results()
        fitting = runner.fits_memory(probes, RANKS, results)
        plan = replace(self._plan, cases=fitting, settings=[Setting("route", paths)])
        self._refine(f"{case[0]}_latency split over {paths}", plan, results, table, SPLIT_PART)
        self.results.unmeasured += [(f"split {name}", size) for name, size in results.unmeasured]
        return results

    def _refine(self, name: str, plan: Plan, results: Results, table: dict[str, Any], part: float) -> None:
        """Measure something that improves the table but is not necessary. If the ranks fail, there
        is a note.
        """
        try:
            self._measure(plan, results, table, part)
        except SessionFailed as error:
            self.results.note(f"{name} was not measured: {error}")

    def _measure(self, plan: Plan, results: Results, table: dict[str, Any], part: float) -> None:
        """Run a plan within its part of the remaining time; nothing if no time remains.

        The ranks use `table`, so that neither the user's table nor rules have an influence.
        """
        if self._ends and self._ends - time.time() < START_S:
            results.unmeasured += [(case.test, case.shape.bytes) for case in plan.cases]
            return
        files = {"PEERWAY_ROUTES": json.dumps(table), "PEERWAY_RULES": '{"rules": []}'}
        own_plan = replace(plan, files=files, ends=within(self._ends, part))
        runner.run_paths(own_plan, results, self._step, {"PEERWAY_PATHS": ""})
