"""From messages to records, one place for all who measure: writes them as they come, keeps what could not be
measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from peerway.bench.session import Message, PlanRefused
from peerway.paths import PathInfo
from peerway.record_output import Output
from peerway.records import Record
from peerway.units import size_text

MOST_NAMED = 8

Step = Callable[[str, int, int], None]
"""Called with what is measured now, how many cases are done and how many there are."""


@dataclass(slots=True)
class Results:
    """What a run gave so far."""

    outputs: Sequence[Output] = ()
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    """The cases for which there was no time."""
    paths: dict[tuple[str, str, str], list[PathInfo]] = field(default_factory=dict)
    """(source, target, op) -> every path, with the reason of those that cannot be used."""
    pair_classes: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """(source, target, op) -> what route tables call such a pair."""
    decisions: list[Message] = field(default_factory=list)
    """Decisions that were asked for: source, target, decision (src/route/explain.h)."""

    stamp: Mapping[str, Any] = field(default_factory=dict)
    """What the extra of each record tells of its run (surroundings.py)."""

    def add(self, record: Record) -> None:
        """Keeps a record and writes it, so that a later failure loses nothing. Raises WriteFailed."""
        if self.stamp:
            record = replace(record, extra={**record.extra, **self.stamp})
        self.records.append(record)
        for output in self.outputs:
            output.add(record)

    def note(self, text: str) -> None:
        """Keeps a remark for the end, once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_unmeasured(self) -> None:
        """Keeps one remark of all cases for which there was no time."""
        total = len(self.unmeasured)
        if not total:
            return
        left = Counter(self.unmeasured)  # several runs, memories and shapes leave cases of one name
        named = list(left.items())[:MOST_NAMED]
        words = [name if count == 1 else f"{name} ({count} times)" for name, count in named]
        rest = total - sum(count for _, count in named)
        words += [f"and {rest} more"] if rest else []
        self.note(f"no time was left for {total} measurement{'s' * (total > 1)}: {', '.join(words)}")

    def add_unmeasured(self, test: str, via: str, count: int) -> None:
        """Keeps the name of a case of `count` bytes for which there was no time."""
        self.unmeasured.append(f"{test} {via} of {size_text(count)}")

    def follow(self, messages: Iterable[Message], step: Step) -> None:
        """Takes all messages of a session. Raises PlanRefused and WriteFailed."""
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
                    self.add_unmeasured(message["test"], message["via"], message["bytes"])
                    done += 1
                case "said":
                    self.note(message["text"])
                case "explained":
                    self.decisions.append(message)
                case "error":
                    raise PlanRefused(message["message"])
        step("", done, done)


def _title(message: Message) -> str:
    return f"{message['test']} {message['via']}"


def _refusal(message: Message) -> str:
    what = f"{message['test']} {message['via']}".strip()
    size = f" of {message['bytes']} bytes" if message["bytes"] else ""
    return f"{what}{size} was not measured: {message['why']}"
