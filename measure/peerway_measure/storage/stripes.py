"""Chooses and reads how Lustre spreads a file over its servers, with Lustre's own tool `lfs`, as a
user may.
"""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

from peerway_common.printable import one_line
from peerway_common.units import size_text
from peerway_measure.bench.shapes import parse_size
from peerway_measure.storage.operation import OperationFailed, finished

_UNIT = 64 << 10  # the size of a stripe must be a multiple of it
_ALL = -1  # Lustre's count for all targets
_PLAIN = ("stripe_count", "stripe_size", "pattern")
LAYOUT = (*_PLAIN, "stripe_layout")  # the keys of a layout in `extra` of a record


def parse(text: str) -> tuple[int, int | None]:
    """Read "4" or "4:16M": the number of targets (-1 for all), and the bytes of a stripe (None if not given).
    Raises ValueError.
    """
    count, colon, size = text.partition(":")
    try:
        bytes_ = parse_size(size) if colon else _UNIT
    except ValueError:
        bytes_ = 0
    if not re.fullmatch(r"-1|[1-9]\d{0,3}", count) or bytes_ % _UNIT or not bytes_:
        raise ValueError(
            f"'{text}' is not a stripe layout; write a count such as 4 (-1: all targets), or a count and a "
            "size that is a multiple of 64K, such as 4:16M"
        )
    return int(count), bytes_ if colon else None


def name(text: str) -> str:
    """The text in the shape of a record: "4:16M" -> "stripes 4 of 16 MiB"; "" -> ""."""
    if not text:
        return ""
    count, size = parse(text)
    return f"stripes {'all' if count == _ALL else count}" + (f" of {size_text(size)}" if size else "")


def choose(folder: Path, text: str, file_system: str, limit_s: float) -> None:
    """Give new files in this folder, which is ours, the layout `text`; with "" the file system's default.
    Raises OperationFailed.
    """
    count, size = parse(text) if text else (0, None)
    layout = ["-c", str(count), *(["-S", str(size)] if size else [])] if text else ["-d"]
    try:
        _lfs("setstripe", *layout, str(folder), limit_s=limit_s)
    except FileNotFoundError:
        lacks = "`lfs`, which chooses them, is not installed; install Lustre's client, or"
        only = f"this file system is {file_system}, and only Lustre has stripes;"
        raise OperationFailed(
            f"stripes cannot be chosen: {lacks if file_system == 'lustre' else only} leave out --stripes"
        ) from None


def layout_of(path: Path, limit_s: float, folder: bool = False) -> dict[str, str]:
    """The layout of a file, or with `folder` the layout that new files get in this folder; empty if there is
    none to see.

    Only `lfs` looks at the path, within the time limit, because the mount may hang.
    """
    try:
        return read(_lfs("getstripe", *(["-d"] if folder else []), str(path), limit_s=limit_s))
    except (OperationFailed, FileNotFoundError):
        return {}


def differs(text: str, layout: dict[str, str]) -> str:
    """How a file's layout differs from the requested one; "" if it does not, or if the layout is
    not known.
    """
    count, size = parse(text)
    actual = layout.get("stripe_count", str(count)), layout.get("stripe_size", str(size))
    wrong_count = count != _ALL and actual[0] != str(count)
    if not wrong_count and (size is None or actual[1] == str(size)):
        return ""
    return f"{name(text)} were asked for, and its files have {actual[0]} of {size_text(int(actual[1]))}"


def read(text: str) -> dict[str, str]:
    """The layout from the output of `lfs`: "stripe_count: 4 stripe_size: 1048576 ..." -> stripe_count,
    stripe_size and pattern.

    A layout of several components has only `stripe_layout`, which lists for each component its count, its
    size and where it ends.
    """
    parts = text.split("lcme_extent.e_end:")[1:]
    if len(parts) > 1:
        return {"stripe_layout": ", ".join(map(_component, parts))}
    return {name: value for name, value in _pairs(text).items() if name in _PLAIN}


def _component(text: str) -> str:
    end = text.split()[0]
    own = _pairs(text)
    to = f"to {size_text(int(end))}" if end.isdecimal() else "to the end"
    return f"{own.get('stripe_count', '?')} of {own.get('stripe_size', '?')} {to}"


def _pairs(text: str) -> dict[str, str]:
    words = text.replace("lmm_", "").split()
    return {key[:-1]: value for key, value in pairwise(words) if key.endswith(":") and value[-1] != ":"}


def _lfs(*words: str, limit_s: float) -> str:
    if not shutil.which("lfs"):
        raise FileNotFoundError("lfs")
    status, out, err = finished(["lfs", *words], limit_s, f"lfs {words[0]}")
    if status:
        says = one_line("lfs", err) or "it printed nothing"
        raise OperationFailed(f"`lfs {' '.join(words)}` ended with status {status}: {says}")
    return out
