"""Turns messages of the ranks into records, writes each record at once, and keeps notes of what could not be
measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from peerway.paths import PathInfo
from peerway_common.units import size_text
from peerway_measure.bench.session import Message, PlanRefused
from peerway_measure.record_output import Output
from peerway_measure.records import Record

MOST_NAMED = 8
MOST_SIZES = 3

Step = Callable[[str, int, int], None]
"""Called with what is measured now, how many cases are done and how many there are."""


@dataclass(slots=True)
class Results:
    """The results of a run so far."""

    outputs: Sequence[Output] = ()
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmeasured: list[tuple[str, int]] = field(default_factory=list)
    """What was measured and of how many bytes, of the cases for which there was no time."""
    paths: dict[tuple[str, str, str], list[PathInfo]] = field(default_factory=dict)
    """(source, target, op) -> every path, with the reason of those that cannot be used."""
    pair_classes: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """(source, target, op) -> what route tables call such a pair."""
    decisions: list[Message] = field(default_factory=list)
    """Decisions that were asked for: source, target, decision (library/src/route/explain.h)."""

    stamp: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the run for the extra of each record (host_state.py)."""

    def add(self, record: Record) -> None:
        """Keep a record and write it, so that a later failure loses nothing. Raises WriteFailed."""
        if self.stamp:
            record = replace(record, extra={**record.extra, **self.stamp})
        self.records.append(record)
        for output in self.outputs:
            output.add(record)

    def note(self, text: str) -> None:
        """Keep a note for the end. A note that is there already is not repeated."""
        if text not in self.notes:
            self.notes.append(text)

    def note_unmeasured(self, remedy: str = "give it more --time") -> None:
        """Keep one note about all cases for which there was no time."""
        total = len(self.unmeasured)
        if not total:
            return
        sizes_of: defaultdict[str, list[int]] = defaultdict(list)
        for name, size in self.unmeasured:
            sizes_of[name].append(size)
        words = [_unmeasured_text(name, sizes) for name, sizes in list(sizes_of.items())[:MOST_NAMED]]
        rest = sum(len(sizes) for sizes in list(sizes_of.values())[MOST_NAMED:])
        words += [f"and {rest} more"] if rest else []
        whole = total + len(self.records)
        self.note(f"no time was left for {total} of {whole} measurements: {', '.join(words)}; {remedy}")

    def add_unmeasured(self, name: str, size: int) -> None:
        """Keep a case for which there was no time: its test with the variant, and its size."""
        self.unmeasured.append((name, size))

    def follow(self, messages: Iterable[Message], step: Step) -> None:
        """Handle all messages of a session. Raises PlanRefused and WriteFailed."""
        done, total = 0, 0
        for message in messages:
            match message.pop("kind"):
                case "record":
                    self.add(Record(**message["record"]))
                case "begin":
                    step(_title(message), done, total)
                    done += 1
                case "plan":
                    total = message["jobs"]
                case "paths":
                    key = (message["source"], message["target"], message["op"])
                    self.pair_classes[key] = message["pair"]
                    self.paths[key] = [PathInfo(*path) for path in message["paths"]]
                case "refused":
                    self.note(_refusal(message))
                case "no time":
                    self.add_unmeasured(_title(message), message["bytes"])
                    done += 1
                case "said":
                    self.note(message["text"])
                case "explained":
                    self.decisions.append(message)
                case "error":
                    raise PlanRefused(message["message"])
        step("", done, done)


def _unmeasured_text(name: str, sizes: Sequence[int]) -> str:
    """The text of one test and variant, such as "put_bw staged (5 times, 4 sizes from 16 B to 32 MiB)"."""
    distinct = sorted(set(sizes))
    if len(distinct) <= MOST_SIZES:
        text = " and ".join(size_text(size) for size in distinct)
    else:
        text = f"{len(distinct)} sizes from {size_text(distinct[0])} to {size_text(distinct[-1])}"
    times = f"{len(sizes)} times, " if len(sizes) > len(distinct) else ""  # for several memories or runs
    return f"{name} ({times}{text})"


def _title(message: Message) -> str:
    return f"{message['test']} {message['via']}"


def _refusal(message: Message) -> str:
    name = f"{message['test']} {message['via']}".strip()
    size = f" of {message['bytes']} bytes" if message["bytes"] else ""
    return f"{name}{size} was not measured: {message['why']}"
