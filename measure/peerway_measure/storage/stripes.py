"""How Lustre spreads a file over its servers: read and chosen with its own tool `lfs`, as a user may."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

from peerway_common.printable import one_line
from peerway_common.units import size_text
from peerway_measure.bench.shapes import parse_size
from peerway_measure.storage.operation import OperationFailed, finished

_UNIT = 64 << 10  # Lustre takes multiples of it as the size of a stripe
_ALL = -1
_PLAIN = ("stripe_count", "stripe_size", "pattern")
LAYOUT = (*_PLAIN, "stripe_layout")  # what the extra of a record may have of it


def parse(text: str) -> tuple[int, int | None]:
    """ "4" or "4:16M": on how many targets, -1 for all, and bytes of a stripe. Raises ValueError."""
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
    """For the shape of a record: "4:16M" -> "stripes 4 of 16 MiB"; "" -> ""."""
    if not text:
        return ""
    count, size = parse(text)
    return f"stripes {'all' if count == _ALL else count}" + (f" of {size_text(size)}" if size else "")


def choose(folder: Path, text: str, file_system: str, limit_s: float) -> None:
    """New files in this folder, which is ours, get this layout; with "" that of the file system. Raises
    OperationFailed.
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
    """The layout of a file, or that which new files get in a `folder`; nothing where there is none to see.
    Only `lfs` looks at the path, within the limit: the mount may hang.
    """
    try:
        return read(_lfs("getstripe", *(["-d"] if folder else []), str(path), limit_s=limit_s))
    except (OperationFailed, FileNotFoundError):
        return {}


def differs(text: str, layout: dict[str, str]) -> str:
    """How a file's layout is another one than was asked for; "" where it is not, or cannot be seen."""
    count, size = parse(text)
    actual = layout.get("stripe_count", str(count)), layout.get("stripe_size", str(size))
    wrong_count = count != _ALL and actual[0] != str(count)
    if not wrong_count and (size is None or actual[1] == str(size)):
        return ""
    return f"{name(text)} were asked for, and its files have {actual[0]} of {size_text(int(actual[1]))}"


def read(text: str) -> dict[str, str]:
    """ "stripe_count:  4 stripe_size: 1048576 ..." -> stripe_count, stripe_size and pattern. A layout of
    several components has `stripe_layout` instead: for each its count and size, and where it ends.
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
