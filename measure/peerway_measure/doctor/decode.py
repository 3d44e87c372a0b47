"""Turns JSON into the dataclasses of facts/ and back. Unknown keys are ignored, and missing ones keep their
defaults.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")
JSON_NAMES = {"observed": "found", "entry": "asked"}  # fields whose key in the JSON differs


def encode(value: Any) -> dict[str, Any]:
    """Make a JSON object of a dataclass; the inverse of decode()."""
    return dataclasses.asdict(
        value, dict_factory=lambda fields: {JSON_NAMES.get(name, name): field for name, field in fields}
    )


def decode(kind: type[T], data: object) -> T:
    """Make a dataclass `kind` from a JSON object. Raises ValueError naming the field that does not fit."""
    value = _decode(kind, data, kind.__name__)
    assert isinstance(value, kind)
    return value


def _decode(kind: Any, data: object, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _record(kind, data, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if data is None:
            return None
        return _decode(next(a for a in arguments if a is not type(None)), data, where)
    if origin is list:
        if not isinstance(data, list):
            raise ValueError(f"{where} is {data!r}; a list was expected")
        return [_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data)]
    if origin is dict:
        if not isinstance(data, dict):
            raise ValueError(f"{where} is {data!r}; an object was expected")
        return {str(key): _decode(arguments[1], item, f"{where}.{key}") for key, item in data.items()}
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{where} is {data!r}; {kind.__name__} was expected")
    return data


def _record(kind: Any, data: object, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where} is {data!r}; an object was expected")
    hints = typing.get_type_hints(kind)
    known = {JSON_NAMES.get(f.name, f.name): f.name for f in dataclasses.fields(kind)}
    return kind(
        **{known[k]: _decode(hints[known[k]], v, f"{where}.{k}") for k, v in data.items() if k in known}
    )
