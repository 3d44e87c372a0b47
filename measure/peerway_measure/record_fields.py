"""Says which values the fields of a record may have, and writes the error texts for all others."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NoReturn

from peerway_common.printable import shortened

TOLERANCE_US = 1e-3  # records may be rounded to a nanosecond
# The bounds of numbers other than 0: below a clock's resolution, and beyond any machine's lifetime or speed.
_TIME, _BANDWIDTH, _RATE, _PERCENT = (1e-6, 1e12), (1e-12, 1e12), (1e-6, 1e15), (1e-6, 1e8)
# The usual spelling of a time; others are left to fromisoformat.
_TIME_TEXT = re.compile(
    r"2\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII
)
_ONLY_TEXT = {str}
NUMBERS = {
    **dict.fromkeys(("p50_us", "p99_us", "min_us", "mean_us"), _TIME),
    "bandwidth_MBps": _BANDWIDTH,
    "messages_per_s": _RATE,
    "cpu_percent": _PERCENT,
}


class RecordError(ValueError):
    """A record cannot be used; the message names the file and line, the field and its value."""


def plainly_right(r: Any) -> bool:
    """A quick check that nearly all records pass. For the others, slower checks find out what is wrong."""
    texts = (r.test, r.via, r.op, r.shape, r.source, r.target, r.host, r.version)
    return (
        {*map(type, texts)} == _ONLY_TEXT and "" not in texts
        and type(r.device) is type(r.driver) is type(r.command) is str
        and type(r.bytes) is type(r.ranks) is type(r.iterations) is int
        and 0 <= r.bytes < 1 << 63 and 1 <= r.ranks < 1 << 63 and 1 <= r.iterations < 1 << 63
        and type(r.p50_us) is type(r.p99_us) is type(r.min_us) is type(r.mean_us) is float
        and type(r.bandwidth_MBps) is type(r.messages_per_s) is float
        and _TIME[0] <= r.min_us <= r.p50_us <= r.p99_us <= _TIME[1] and r.min_us <= r.mean_us <= _TIME[1]
        and (r.bandwidth_MBps == 0 or _BANDWIDTH[0] <= r.bandwidth_MBps <= _BANDWIDTH[1])
        and (r.messages_per_s == 0 or _RATE[0] <= r.messages_per_s <= _RATE[1])
        and (r.cpu_percent is None or type(r.cpu_percent) is float)
        and _PERCENT[0] <= (r.cpu_percent or 1) <= _PERCENT[1]
        and type(r.validated) is bool and type(r.extra) is dict
        and type(r.time) is str and _TIME_TEXT.fullmatch(r.time) is not None
    )  # fmt: skip


def typed(record: object, name: str, kind: Any, wanted: str) -> Any:
    """Return the field's value, which must be of this type. True and false do not count as numbers."""
    value = getattr(record, name)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        refuse(name, value, wanted)
    return value


def number(record: object, name: str) -> None:
    """Check a number, which must be 0 or within the bounds of its field."""
    value = typed(record, name, int | float, "a number")
    least, most = NUMBERS[name]
    if not (value == 0 or least <= value <= most):
        refuse(name, value, f"0, or a number from {least:g} to {most:g}")


def check_time(value: object) -> None:
    """Check a time, which must be in UTC, as records spell it."""
    wanted = "a time in UTC such as 2026-11-21T09:30:00Z"
    try:
        right = (
            isinstance(value, str)
            and value.isprintable()  # fromisoformat allows any character between date and time
            and datetime.fromisoformat(value).utcoffset() == timedelta(0)
        )
    except ValueError:
        right = False
    check(right, "time", value, wanted)


def check(right: bool, name: str, value: object, wanted: str) -> None:
    """Raises RecordError unless `right`; `wanted` says what the field must be."""
    if not right:
        refuse(name, value, wanted)


def refuse(name: str, value: object, wanted: str) -> NoReturn:
    """Like check(), but computes `wanted` only if it is needed, which takes time."""
    raise RecordError(f"field '{shortened(name)}' is {short(value)}, but must be {wanted}")


def short(value: object) -> str:
    """A value as error texts show it, shortened."""
    return shortened(repr(value[:64] if isinstance(value, str) and len(value) > 64 else value))
