"""Check arguments: numbers, devices and types of objects. Error messages name the call and the argument."""

from __future__ import annotations

from operator import index
from typing import Any, TypeVar

from peerway.errors import InvalidArgument

Kind = TypeVar("Kind")

_LARGEST = 2**64 - 1


def number(name: str, value: object, least: int = 0, most: int = _LARGEST) -> int:
    """Return a whole number from `least` to `most`; `what` names it in messages. Raises InvalidArgument."""
    try:
        result = index(value)  # type: ignore[arg-type]  # NumPy's integers, too
    except TypeError:
        raise InvalidArgument(f"peerway: {name} is {shown(value)}; give a whole number.") from None
    if not least <= result <= most:
        limit = f"{least} or more" if result < least else f"at most {most}"
        raise InvalidArgument(f"peerway: {name} is {result}; give {limit}.")
    return result


def seconds(value: float | None) -> float | None:
    """A timeout in seconds, or None. Raises InvalidArgument for anything else."""
    if value is None:
        return None
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = -1.0
    if not result >= 0 or isinstance(value, str):
        raise InvalidArgument(
            f"peerway: a timeout of {shown(value)}; give seconds, 0 or more, or None to wait for ever."
        )
    return result


def of_kind(name: str, value: object, kind: type[Kind], advice: str) -> Kind:
    """Return the value, which must be of that class; `advice` says how to get one. Raises InvalidArgument."""
    if isinstance(value, kind):
        return value
    raise InvalidArgument(f"peerway: {name} is {shown(value)}; {advice}")


def device(name: object) -> tuple[str, int]:
    """ "cuda:1" as kind and index; the index is -1 if none is given. Raises InvalidArgument."""
    if not isinstance(name, str):
        raise InvalidArgument(
            f"peerway: the device is {shown(name)}; give its name: 'host', 'cuda' or 'cuda:N'."
        )
    kind, colon, place = name.partition(":")
    if colon and not place.isdecimal():
        raise InvalidArgument(f"peerway: unknown device '{name}'; there are 'host', 'cuda' and 'cuda:N'.")
    return kind, number(f"the index of the device '{name}'", int(place), most=2**31 - 1) if place else -1


def shown(value: object) -> str:
    """A value as messages show it: the value itself if it is short, otherwise its type."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    return called(value)


def called(thing: object) -> str:
    """The name that messages use for an array or another object."""
    shape: Any = getattr(thing, "shape", None)
    name = type(thing).__name__
    try:
        return f"{name} of shape {tuple(shape)}" if shape is not None else f"a {name}"
    except TypeError:
        return f"a {name}"
