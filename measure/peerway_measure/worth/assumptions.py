"""The assumptions of `peerway worth`: each has a default, and a value that switches it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from peerway_common.suggestion import did_you_mean


@dataclass(frozen=True, slots=True)
class Choices:
    """Values of an assumption that are words, each with what is assumed then."""

    words: dict[str, str]

    def parse(self, text: str) -> str:
        """Raises ValueError."""
        if text not in self.words:
            raise ValueError(f"is {text!r}, but must be {' or '.join(self.words)}")
        return text

    def sentence(self, value: str | float) -> str:
        """What is assumed with this value."""
        return self.words[str(value)]


@dataclass(frozen=True, slots=True)
class Percentage:
    """Values of an assumption that are per cent."""

    text: str

    def parse(self, text: str) -> float:
        """Raises ValueError."""
        try:
            value = float(text.removesuffix("%"))
        except ValueError:
            value = -1.0
        if not 0 <= value <= 100:
            raise ValueError(f"is {text!r}, but must be a number of per cent from 0 to 100")
        return value

    def sentence(self, value: str | float) -> str:
        """What is assumed with this value."""
        return self.text.format(f"{value:g} %")


def _words(default: str, **words: str) -> str:
    """A field whose values are words; names in `words` have _ in place of -."""
    kind = Choices({word.replace("_", "-"): text for word, text in words.items()})
    return field(default=default, metadata={"kind": kind})


def _percentage(default: float, text: str) -> float:
    return field(default=default, metadata={"kind": Percentage(text)})


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The values that are in force. The names of the fields have _ where the command line has -."""

    year: str = _words(
        "scaled",
        scaled="The accounted time is typical: its hours are scaled to 365.25 days.",
        period="No year: the hours are those of the accounted time.",
    )
    used: float = _percentage(100.0, "Other jobs use {} of the freed hours.")
    sizes: str = _words(
        "within",
        within="A speed-up between two measured sizes is interpolated; up to half the smallest and twice the "
        "largest size it is that of the nearest; further away it is unknown.",
        nearest="A speed-up between two measured sizes is interpolated; beyond them it is that "
        "of the nearest.",
        exact="A speed-up is known only at the sizes that were measured.",
    )
    unmeasured: float = _percentage(
        1.0,
        "Transfers without a measured speed-up count as unchanged if they take at most {} of the run time; "
        "if they take more, the row is unknown.",
    )
    no_difference: str = _words(
        "interval",
        interval="A speed-up that shows no difference counts with its value and interval.",
        zero="A speed-up that shows no difference counts as none.",
    )
    other_changes: str = _words(
        "unknown",
        unknown="A speed-up is unknown where something besides the stated factors changed.",
        accepted="What else changed between the two sides has no effect.",
    )
    order: str = _words(
        "unknown",
        unknown="A difference that is confounded with time is unknown.",
        accepted="Time alone changed nothing between the two sides.",
    )
    errors: str = _words(
        "together",
        together="The errors of all speed-ups of a node type have the same direction: the interval is wide.",
        independent="The errors of the speed-ups are independent of each other.",
    )
    waits: str = _words(
        "unchanged",
        unchanged="Waits for the other side take as long as before.",
        shrink="Waits for the other side shrink as the transfers do.",
    )
    traces: str = _words(
        "own-type",
        own_type="A trace stands only for the node type on which it was recorded.",
        any_type="A trace stands also for node types on which its application was not traced.",
    )
    one_trace: str = _words(
        "unknown",
        unknown="With one trace of an application, how much its shares vary is unknown, and so is "
        "the interval.",
        exact="All runs of an application that was traced once have the shares of that trace.",
    )
    untraced: str = _words(
        "unknown",
        unknown="Applications without traces are unknown.",
        average="Applications without traces gain as much as the known ones of their node type on average.",
    )
    control: str = _words(
        "subtracted",
        subtracted="Without notices the idle share would have changed as it did among users without any.",
        ignored="Without notices the idle share would have stayed.",
    )

    def as_dict(self) -> dict[str, str | float]:
        """The values by the names of the command line."""
        return {name: getattr(self, name.replace("-", "_")) for name in KINDS}

    def sentences(self) -> list[tuple[str, str]]:
        """Each assumption as NAME=VALUE, and what it says."""
        return [(f"{name}={value_text(value)}", KINDS[name].sentence(value))
                for name, value in self.as_dict().items()]  # fmt: skip


KINDS: dict[str, Choices | Percentage] = {
    each.name.replace("_", "-"): each.metadata["kind"] for each in fields(Assumptions)
}


def value_text(value: str | float) -> str:
    """A value as --assume takes it."""
    return value if isinstance(value, str) else f"{value:g}%"


def parse(several: tuple[str, ...]) -> Assumptions:
    """Read NAME=VALUE, each at most once. Raises ValueError."""
    values: dict[str, str | float] = {}
    for text in several:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} has no value; write NAME=VALUE, such as sizes=exact")
        if name not in KINDS:
            hint = did_you_mean(name, KINDS)
            raise ValueError(f"there is no assumption {name!r}{hint or '.'} There are {', '.join(KINDS)}")
        if name.replace("-", "_") in values:
            raise ValueError(f"{name} is given twice; give one value")
        try:
            values[name.replace("-", "_")] = KINDS[name].parse(value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    return Assumptions(**values)  # type: ignore[arg-type]
