"""The schema of a benchmark result: a record, one JSON object on a line.

Times are in microseconds for one way, sizes in bytes; 1 MB is 10^6 bytes. records.py reads and writes files
of records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from peerway_common.printable import json_text, printable
from peerway_measure.record_fields import (
    NUMBERS,
    TOLERANCE_US,
    check,
    check_time,
    number,
    plainly_right,
    refuse,
    short,
    typed,
)
from peerway_measure.record_fields import RecordError as RecordError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Keys in `extra` that readers of records use.
RUN = "run"  # which run of `peerway bench` made the record
ROUND = "round"  # the campaign's pass that made the record
NODE_TYPE = "node_type"  # the type of the node that made the record
LOAD = "load"  # how many CPUs other processes kept busy
STATE_WANTED = "state_wanted"  # the requested state of the caches, if a read found another: storage/states.py
ALLOWED = "allowed"  # the paths that the user allowed the route to choose from; absent: all
FIXED = "iterations_fixed"  # true if the user set the number of iterations, instead of a time
_NAMES = ("test", "via", "op", "shape", "source", "target", "host", "version")
_TEXTS = (*_NAMES, "device", "driver", "command")
_texts_of: Callable[[Any], tuple[str, ...]] = attrgetter(*_TEXTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One measured point: one test with one message size, over one path or peer, between two devices.

    `via` is a path ("peer/copy"), "route" (the automatic choice) or a peer's name ("openmpi"). `shape` is
    "contiguous" or a face of a cube of doubles as written by `cube_shape`. `source` and `target` name where
    the memory lives ("host", "cuda:0"). `device` and `driver` describe the hardware and its driver, "" if
    there is none. `cpu_percent` is None if it was not measured. `command` is the command line that made the
    record. `extra` holds further values of the program that made it; readers keep values that they do not
    know.
    """

    test: str
    via: str
    op: str
    shape: str
    bytes: int
    ranks: int
    source: str
    target: str
    iterations: int
    p50_us: float
    p99_us: float
    min_us: float
    mean_us: float
    bandwidth_MBps: float
    messages_per_s: float
    validated: bool
    cpu_percent: float | None
    host: str
    device: str
    driver: str
    version: str
    time: str
    command: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not plainly_right(self):
            self._check()

    def _check(self) -> None:
        """Check each field. Raises RecordError for the first that is wrong; returns if all are right after
        all.
        """
        for name in _NAMES:
            check(bool(typed(self, name, str, "text")), name, getattr(self, name), "text that is not empty")
        for name in ("device", "driver", "command"):
            typed(self, name, str, "text")
        for name, least in (("bytes", 0), ("ranks", 1), ("iterations", 1)):
            value = typed(self, name, int, "a whole number")
            if not least <= value < 1 << 63:
                refuse(name, value, f"a whole number from {least} to 2^63 - 1")
        for name in NUMBERS:
            if name != "cpu_percent" or self.cpu_percent is not None:
                number(self, name)
        typed(self, "validated", bool, "true or false")
        typed(self, "extra", Mapping, "an object")
        check_time(self.time)
        for low, high in (("min_us", "p50_us"), ("p50_us", "p99_us"), ("min_us", "mean_us")):
            least, most = getattr(self, low), getattr(self, high)
            if least > most + TOLERANCE_US:
                refuse(low, least, f"at most {high} ({most})")

    @classmethod
    def from_samples(
        cls,
        samples_ns: ArrayLike,
        *,
        one_way_trips: int = 1,
        messages: int = 1,
        streams: int = 1,
        time: str | None = None,
        **known: Any,
    ) -> Record:
        """A record from the nanoseconds of each iteration (a flat array, at least one sample).

        A sample has so many one-way trips (2 for a round trip) of `messages` messages one after the other (a
        window of 64 puts: 64), so that the times are those of one message one way. `streams` such messages
        move at once (2 for both directions, the number of pairs for several) and add up to the bandwidth,
        which is that of the median. `known` has the fields that samples do not give. Raises RecordError for
        samples that cannot be times.
        """
        import numpy as np

        samples = np.asarray(samples_ns, dtype=np.float64)
        if samples.ndim != 1 or samples.size == 0:
            raise RecordError(f"samples of shape {samples.shape}; a flat array of at least one is needed")
        if not np.all(np.isfinite(samples)) or samples.min() < 0:
            raise RecordError("a sample is negative or not a number; nanoseconds are needed")
        if min(one_way_trips, messages, streams) < 1:
            raise RecordError(
                f"one_way_trips {one_way_trips}, messages {messages}, streams {streams}: each must be at "
                "least 1"
            )
        each_us = samples / (1e3 * one_way_trips * messages)
        p50, p99 = (float(value) for value in np.percentile(each_us, (50, 99)))
        if p50 == 0:
            raise RecordError("the median sample is 0 ns, below the clock; time more messages at once")
        rate = streams * 1e6 / p50
        return cls(
            iterations=samples.size,
            p50_us=_rounded(p50),
            p99_us=_rounded(p99),
            min_us=_rounded(float(each_us.min())),
            mean_us=_rounded(float(each_us.mean())),
            bandwidth_MBps=_rounded(known["bytes"] * rate / 1e6),
            messages_per_s=_rounded(rate),
            time=time or now(),
            **known,
        )

    @property
    def full_via(self) -> str:
        """`via` and, if the user restricted the route, the paths that it could choose from: "route
        (staged)".
        """
        allowed = self.extra.get(ALLOWED, "")
        return f"{self.via} ({allowed})" if allowed and isinstance(allowed, str) else self.via

    @property
    def run(self) -> str:
        """The run of `peerway bench` that made the record, as named in `extra`; "" without a name."""
        name = self.extra.get(RUN, "")
        return name if isinstance(name, str) else ""

    @property
    def node_type(self) -> str:
        """The type of the node that made the record, according to a campaign or the user; "" if unknown."""
        name = self.extra.get(NODE_TYPE, "")
        return name if isinstance(name, str) else ""

    def as_json(self) -> str:
        """The record as one line of JSON, without the newline."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        values["extra"] = dict(self.extra)
        for optional in ("command", "extra"):
            if not values[optional]:
                del values[optional]
        try:
            return json_text(values)
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordError(f"field 'extra' cannot be written as JSON: {error}") from None

    def as_printable(self) -> Record:
        """A copy whose text is safe to print, on one line; see printable.py."""
        texts = _texts_of(self)
        if "".join(texts).isprintable() and all(map(_is_shown, self.extra.items())):
            return self
        safe: dict[str, Any] = {name: printable(text) for name, text in zip(_TEXTS, texts, strict=True)}
        kept = {printable(name): _shown(value) for name, value in self.extra.items()}
        return replace(self, **safe, extra=kept)


_KNOWN = frozenset(f.name for f in fields(Record))
_REQUIRED = tuple(f.name for f in fields(Record) if f.default is MISSING and f.default_factory is MISSING)
_REQUIRED_SET = frozenset(_REQUIRED)
_in_order: Callable[[Any], tuple[Any, ...]] = itemgetter(*(f.name for f in fields(Record)))
_PUT = tuple(getattr(Record, f.name).__set__ for f in fields(Record))


def factor_text(name: str, value: str) -> str:
    """The spelling of a factor in the shape of a record, for factors that the test itself does not know:
    "threads=4".
    """
    return f"{name}={'_'.join(value.split())}"


def parse(line: str) -> Record:
    """Parse one line of JSON. Raises RecordError, which names the field and its value."""
    values = _decoder().decode(line)
    if not isinstance(values, dict):
        raise RecordError(f"found {short(values)}, but a record is a JSON object")
    if not values.keys() >= _REQUIRED_SET:
        missing = [name for name in _REQUIRED if name not in values]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise RecordError(f"field '{missing[0]}' is missing{more}")
    extra = values.pop("extra", {})
    check(isinstance(extra, dict), "extra", extra, "an object")
    if not values.keys() <= _KNOWN:
        for name in [name for name in values if name not in _KNOWN]:
            check(name not in extra, name, values[name], "only once, either at the top or in 'extra'")
            extra[name] = values.pop(name)
    for name in _TEXTS:  # thousands of records have a few names among them
        if type(text := values.get(name)) is str:
            values[name] = sys.intern(text)
    values["extra"] = extra
    values.setdefault("command", "")
    # A frozen class sets its fields through object.__setattr__, which takes three times as long as its slots.
    record = object.__new__(Record)
    for put, value in zip(_PUT, _in_order(values), strict=True):
        put(record, value)
    record.__post_init__()
    return record


@cache
def _decoder() -> json.JSONDecoder:
    """One decoder for all lines, because json.loads makes a new one for each."""
    return json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def now() -> str:
    """The present time as records spell it: 2026-11-21T09:30:00Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    fields.clear()
    for name, value in pairs:
        check(name not in fields, name, value, "given only once")
        fields[name] = value
    return fields


def _no_constant(name: str) -> float:
    raise RecordError(f"found {name}, but a record has finite numbers only")


def _is_shown(item: tuple[str, object]) -> bool:
    """Whether a name and a value of `extra` can be printed unchanged."""
    name, value = item
    return name.isprintable() and (type(value) is not str or value.isprintable())


def _shown(value: object) -> object:
    """A value of `extra` as text that a reader may print."""
    return printable(value) if isinstance(value, str) else value


def _rounded(value: float) -> float:
    return float(f"{value:.7g}")
