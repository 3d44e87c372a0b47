"""Samples in VictoriaMetrics or Prometheus: written by remote write, read by PromQL.

A series is a metric with the labels node and device; no label contains a job's id. Retention and thinning
are left to that server. A cluster of VictoriaMetrics has several addresses (prom_addresses.py). Prometheus
must be started with --web.enable-remote-write-receiver, and with storage.tsdb.out_of_order_time_window in its
settings for as long as an agent may be away.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

import numpy as np

from peerway_jobs.metrics import KINDS, METRICS
from peerway_jobs.store.chunk import Points, Times, merged
from peerway_jobs.store.prom_addresses import addresses
from peerway_jobs.store.remote_write import RemoteWrite
from peerway_jobs.store.sample_damage import SampleDamage
from peerway_jobs.store.samples import Filed, Key, Samples, StoreFailed, Thinning

TIMEOUT_S = 60
STORAGE_TIMEOUT_S = 5  # for one vmstorage of several, of which each is asked every two seconds
MOST_ANSWER = 512 << 20  # bytes: six hours of a node with 512 CPUs, twice
_PIECE_MS = 6 * 3_600_000  # of one query: servers limit the number of samples of an answer
_DAY_MS = 86_400_000  # of one export
_PIECE_BYTES = 1 << 20  # of an export, read at once
_PERIODS = 10_000


class SamplesRefused(StoreFailed):
    """The server will not accept these samples later either."""


class _NoStart(StoreFailed):
    """What answers is no database."""


class _NotThere(StoreFailed):
    """The server has no such address."""


class PromStore(Samples):
    """Samples in a server, or in a cluster of VictoriaMetrics."""

    reads_together = True

    def __init__(self, url: str, select: str = "", storages: Iterable[str] = ()) -> None:
        """`url` is a server's address; prom_addresses.py says what the others are. Raises ValueError."""
        self._at = addresses(url, select, storages)
        self._remote_write = RemoteWrite()
        self._exports = True  # until it answers that it has no such address, as Prometheus does

    def put(self, batches: Sequence[Filed]) -> None:
        """Accepted by the server when this returns; on its disk perhaps later. Raises StoreFailed."""
        import cramjam

        if not (body := self._remote_write.request(batches)):
            return
        self._ask(
            self._at.insert + "/api/v1/write",
            bytes(cramjam.snappy.compress_raw(body)),
            {
                "Content-Type": "application/x-protobuf",
                "Content-Encoding": "snappy",
                "X-Prometheus-Remote-Write-Version": "0.1.0",
            },
        )

    def read(
        self,
        node: str,
        kind: str,
        start_ms: int,
        end_ms: int,
        devices: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
    ) -> dict[Key, Points]:
        """Read the samples as they were written: by VictoriaMetrics' export, or else with range selectors."""
        only = None if devices is None else frozenset(devices)
        wanted = [
            m.name for m in METRICS.values() if m.kind == kind and (metrics is None or m.name in metrics)
        ]
        selector = f'{{__name__=~"{"|".join(wanted)}",node={quoted(node)}}}'
        parts: defaultdict[Key, list[Points]] = defaultdict(list)
        if self._exports and wanted:
            try:
                return self._exported(selector, start_ms, end_ms, only)
            except _NotThere:
                self._exports = False
        begin = start_ms
        while begin < end_ms and wanted:
            end = min(begin + _PIECE_MS, end_ms)
            # An instant query of a range returns the samples within it, including its right end.
            query = {"query": f"{selector}[{end - begin}ms]", "time": f"{end / 1000:.3f}"}
            answer = self._ask(f"{self._at.select}/api/v1/query?" + urllib.parse.urlencode(query), None, {})
            try:
                for each in json.loads(answer)["data"]["result"]:
                    labels = each["metric"]
                    if only is None or labels["device"] in only:
                        key = labels["device"], labels["__name__"]
                        parts[key].append(_points(each["values"], begin, end))
            except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
                raise StoreFailed(
                    f"{self._at.select} gave no samples: {type(error).__name__}: {error}"
                ) from None
            begin = end
        points_of = {key: merged(several) for key, several in parts.items()}
        return {key: points for key, points in points_of.items() if points.times.size}

    def read_node(
        self, node: str, start_ms: int, end_ms: int, metrics: Iterable[str] | None = None
    ) -> dict[str, dict[Key, Points]]:
        """One export for all kinds: the search for a node's series costs more than the samples of hours."""
        wanted = [*METRICS] if metrics is None else sorted(metrics)
        if not self._exports or not wanted:
            return super().read_node(node, start_ms, end_ms, wanted)
        kinds: dict[str, dict[Key, Points]] = {kind: {} for kind in KINDS}
        try:
            selector = f'{{__name__=~"{"|".join(wanted)}",node={quoted(node)}}}'
            for key, points in self._exported(selector, start_ms, end_ms, None).items():
                kinds[METRICS[key[1]].kind][key] = points
        except _NotThere:
            self._exports = False
            return super().read_node(node, start_ms, end_ms, wanted)
        return kinds

    def _exported(
        self, selector: str, start_ms: int, end_ms: int, only: frozenset[str] | None
    ) -> dict[Key, Points]:
        """Read one line of JSON for each series: several times faster than an answer to a query, where
        values are texts. Most devices of a node have the same times, which are parsed once.
        """
        import orjson

        parts: defaultdict[Key, list[Points]] = defaultdict(list)
        for begin in range(start_ms, end_ms, _DAY_MS):
            end = min(begin + _DAY_MS, end_ms)
            query = {"match[]": selector, "start": f"{begin / 1000:.3f}", "end": f"{end / 1000:.3f}"}
            address = f"{self._at.select}/api/v1/export?" + urllib.parse.urlencode(query)
            clocks: dict[bytes, _Clock] = {}
            try:
                for line in self._lines(address):
                    head, _, clock = line.rpartition(b',"timestamps":')
                    if clock not in clocks:
                        stamps = np.array(orjson.loads(clock.removesuffix(b"}")), np.int64)
                        clocks[clock] = _Clock(stamps, begin, end)
                    series = orjson.loads(head + b"}")
                    labels = series["metric"]
                    if only is None or labels["device"] in only:
                        points = clocks[clock].points(np.array(series["values"], float))
                        parts[labels["device"], labels["__name__"]].append(points)
            except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
                raise StoreFailed(
                    f"{self._at.select} gave no samples: {type(error).__name__}: {error}"
                ) from None
        points_of = {key: merged(several) if several[1:] else several[0] for key, several in parts.items()}
        return {key: points for key, points in points_of.items() if points.times.size}

    def began(self) -> str:
        """When the processes that hold the samples started; another value means another process.

        While one of several is away, the others take its samples, and its absence is part of the value.
        Raises StoreFailed if none answers.
        """
        if len(self._at.storages) == 1:
            return self._process_began(self._at.storages[0], TIMEOUT_S)
        starts: dict[str, str] = {}
        for storage in self._at.storages:
            try:
                starts[storage] = self._process_began(storage, STORAGE_TIMEOUT_S)
            except _NoStart:
                raise
            except StoreFailed as error:
                starts[storage], away = "away", error
        if "away" in starts.values() and len({*starts.values()}) == 1:
            raise StoreFailed(f"none of {len(starts)} vmstorage answers: {away}")
        return " ".join(f"{storage}={start}" for storage, start in starts.items())

    def _process_began(self, storage: str, timeout: float) -> str:
        for line in self._ask(storage + "/metrics", None, {}, timeout).decode(errors="replace").splitlines():
            name, _, value = line.partition(" ")
            if name == "process_start_time_seconds":
                return value
        raise _NoStart(
            f"{storage}/metrics has no process_start_time_seconds: give the address of VictoriaMetrics, "
            "Prometheus or vmstorage itself, not of what stands before it"
        )

    def tidy(self, now_ms: int, thinning: Thinning) -> None:
        """Do nothing: the server tidies by its own settings."""

    def damage(self) -> list[SampleDamage]:
        """Nothing: its files are the server's own."""
        return []

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _ask(
        self, url: str, body: bytes | None, headers: dict[str, str], timeout: float = TIMEOUT_S
    ) -> bytes:
        request = urllib.request.Request(url, data=body, headers=headers)
        with self._answer(request, timeout) as answer:
            data = bytes(answer.read(MOST_ANSWER + 1))
            if len(data) > MOST_ANSWER:
                raise _too_long(url)
        return data

    def _lines(self, url: str) -> Iterator[bytes]:
        """The lines of an answer. They are read 1 MiB at a time, so that they are parsed while the database
        sends the next.
        """
        left, rest = MOST_ANSWER, b""
        with self._answer(urllib.request.Request(url), TIMEOUT_S) as answer:
            while piece := answer.read(_PIECE_BYTES):
                left -= len(piece)
                if left < 0:
                    raise _too_long(url)
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
        if rest:
            yield rest

    @contextmanager
    def _answer(self, request: urllib.request.Request, timeout: float) -> Iterator[Any]:
        """The answer to a request. Raises StoreFailed if there is none, or if a part of it does not come."""
        server, reached = request.full_url.partition("?")[0], False
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                reached = True
                yield answer
                if answer.length:  # of what its head announced; read() gives less without an error
                    raise HTTPException(f"{answer.length} bytes are missing")
        except StoreFailed:
            raise
        except urllib.error.HTTPError as error:
            why = ""
            with suppress(OSError, HTTPException):
                why = error.read(500).decode(errors="replace")
            kind = {400: SamplesRefused, 404: _NotThere, 405: _NotThere}.get(error.code, StoreFailed)
            raise kind(f"{server} answered {error.code}: {why}") from None
        except (OSError, HTTPException) as error:
            failed = f"the answer of {server} broke off" if reached else f"cannot reach {server}"
            raise StoreFailed(f"{failed}: {error}") from None


def _too_long(url: str) -> StoreFailed:
    return StoreFailed(f"{url.partition('?')[0]} answered more than {MOST_ANSWER:,} bytes")


def quoted(text: str) -> str:
    """A text as a PromQL string, quoted so that no part of it is read as a selector."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _points(values: list[list[Any]], begin: int, end: int) -> Points:
    times = np.array([round(float(value[0]) * 1000) for value in values], np.int64)
    figures = np.array([float(value[1]) for value in values])
    return _Clock(times, begin, end).points(figures)


class _Clock:
    """The times of series, as far as they are within (begin, end]."""

    def __init__(self, times: Times, begin: int, end: int) -> None:
        self._inside = (times > begin) & (times <= end)
        self._times = times[self._inside]
        steps = np.diff(self._times)
        self._period = int(np.median(steps)) if steps.size else _PERIODS
        self._ascends = bool((steps > 0).all())

    def points(self, figures: Any) -> Points:
        """The points of a series with these figures, one for each time."""
        points = Points(self._times, figures[self._inside], self._period)
        return points if self._ascends else merged([points])
