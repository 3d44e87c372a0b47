"""Turns outcomes into records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from peerway_common.units import size_text
from peerway_measure.bench.results import Results
from peerway_measure.records import FIXED, Record, now
from peerway_measure.storage.engines.base import Engine, Outcome
from peerway_measure.storage.request import RANDOM_BLOCK, Files
from peerway_measure.storage.stripes import LAYOUT

FILE = "file"  # the name in records of the end that is not memory
_SMALL_TESTS = ("create", "stat", "read", "rename", "remove")


class Sink:
    """Makes records and passes them on. Records whose data is checked only when their files are done wait
    until then.
    """

    def __init__(
        self, results: Results, known: Mapping[str, Any], extra: Mapping[str, Any], nodes: int
    ) -> None:
        self._results, self._known, self._extra = results, known, dict(extra)
        if nodes > 1:
            self._extra["nodes"] = nodes
        self._waiting: list[Callable[[bool], None]] = []
        self.layout: dict[str, str] = {}  # the layout of the measured files; empty if it is not known

    def note(self, text: str) -> None:
        """Keep a remark for the end."""
        self._results.note(text)

    def later(self, make: Callable[[bool], None]) -> None:
        """Keep a record that can be made once it is known whether the data was right."""
        self._waiting.append(make)

    def settle(self, right: bool) -> None:
        """Make the records that wait. `right`: whether the data was right."""
        waiting, self._waiting = self._waiting, []
        for make in waiting:
            make(right)

    def moved(
        self,
        engine: Engine,
        test: str,
        op: str,
        files: Files,
        outcome: Outcome,
        state: Mapping[str, Any],
    ) -> None:
        """Record a transfer of whole files."""
        fields: dict[str, Any] = {"test": test, "shape": files.shape(op), "bytes": files.size}
        self._add(
            engine,
            [outcome.elapsed_ns],
            op,
            files,
            outcome,
            {**state, **_factors(files, files.block)},
            **fields,
        )

    def latencies(
        self,
        engine: Engine,
        test: str,
        op: str,
        files: Files,
        outcome: Outcome,
        state: Mapping[str, Any],
    ) -> None:
        """Record single operations, each with its time."""
        fields: dict[str, Any] = {"test": test, "shape": files.random_shape(op), "bytes": RANDOM_BLOCK}
        state = {**state, **_factors(files, RANDOM_BLOCK)}
        if outcome.times:
            self._add(engine, list(outcome.times), op, files, outcome, state, **fields)
            return
        q = outcome.quantiles
        rate = files.streams * 1e9 / q["p50"]
        times: dict[str, Any] = {
            f"{name}_us": round(q[name] / 1e3, 4) for name in ("p50", "p99", "min", "mean")
        }
        rates: dict[str, Any] = {
            "messages_per_s": rate,
            "bandwidth_MBps": RANDOM_BLOCK * rate / 1e6,
            "iterations": 1,
            "time": now(),
        }
        known = self._fields(engine, op, files, outcome, state)
        self._results.add(Record(**known, **fields, **times, **rates))

    def rates(self, engine: Engine, streams: int, shape: str, count: int, answer: Mapping[str, Any]) -> None:
        """Record operations per second on small files."""
        files = Files(0, 0, streams, "buffered", False, frozenset())
        for name in _SMALL_TESTS:
            outcome = Outcome(answer[f"{name}_ns"], data_is_correct=True)
            self._add(
                engine,
                [outcome.elapsed_ns],
                name,
                files,
                outcome,
                {"files_a_stream": count},
                messages=count,
                test=f"file_{name}_mr",
                shape=shape,
                bytes=0,
            )

    def _add(
        self,
        engine: Engine,
        samples: list[int],
        op: str,
        files: Files,
        outcome: Outcome,
        state: Mapping[str, Any],
        messages: int = 1,
        **fields: Any,
    ) -> None:
        known = self._fields(engine, op, files, outcome, state) | fields
        self._results.add(Record.from_samples(samples, messages=messages, streams=files.streams, **known))

    def _fields(
        self, engine: Engine, op: str, files: Files, outcome: Outcome, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        known = {k: v for k, v in self._extra.items() if not self.layout or k not in LAYOUT} | self.layout
        cpu = (
            round(outcome.cpu_us * 1e5 / outcome.elapsed_ns, 1)
            if outcome.elapsed_ns and outcome.cpu_us
            else None
        )
        source, target = (FILE, engine.memory) if op in ("read", "stat") else (engine.memory, FILE)
        return {
            **self._known,
            "via": engine.name,
            "op": op,
            "ranks": files.streams,
            "source": source,
            "target": target,
            "validated": outcome.data_is_correct is True,
            "cpu_percent": cpu,
            "extra": {**known, **outcome.extra, **state, FIXED: True},
        }


def _factors(files: Files, block: int) -> dict[str, str]:
    """The chosen factors of the files, by the names of the options. `peerway compare --factor` uses these
    names.
    """
    return {"size": size_text(files.size), "block": size_text(block), "mode": files.mode}
