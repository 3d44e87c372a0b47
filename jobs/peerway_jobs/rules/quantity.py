"""Parses durations and sizes as rules write them, such as "30m" and "32GiB"."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|KiB|MiB|GiB|TiB)")
# Mistaken forms of such a quantity. All other texts, such as the name of a partition, stay texts.
_MISTAKEN = re.compile(
    r"\d+(?:\.\d+)?\s*(?:s|m|h|d|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|[kmgt](?:i?b)?|b|bytes?)",
    re.IGNORECASE,
)


def quantity(value: Any) -> Any:
    """The seconds of a duration or the bytes of a size; any other value unchanged.

    Raises ValueError if the unit does not exist.
    """
    if not isinstance(value, str):
        return value
    if match := _QUANTITY.fullmatch(value):
        return float(match[1]) * _UNITS[match[2]]
    if _MISTAKEN.fullmatch(value):
        raise ValueError(
            f"{value!r} is no duration or size; the units are {', '.join(_UNITS)}, as in 30m and 32GiB"
        )
    return value
