"""Loads one shared library and prints its path and version as one line of JSON.

A program of its own: a broken library can crash the process that loads it. The question is {"kind": ...,
"candidates": [path or soname, ...]}.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def numbers(function: Any, kind: Any = ctypes.c_int, count: int = 2) -> list[int]:
    """Call a function that fills ints."""
    values = [kind() for _ in range(count)]
    function(*[ctypes.byref(v) for v in values])
    return [int(v.value) for v in values]


def nvrtc(library: Any) -> dict[str, Any]:
    """Ask NVRTC."""
    major, minor = numbers(library.nvrtcVersion)
    count = numbers(library.nvrtcGetNumSupportedArchs, count=1)[0]
    targets = (ctypes.c_int * count)()
    library.nvrtcGetSupportedArchs(targets)
    return {"version": f"{major}.{minor}", "targets": sorted(targets)}


def gdrapi(library: Any) -> dict[str, Any]:
    """Ask GDRCopy."""
    major, minor = numbers(library.gdr_runtime_get_version)
    return {"version": f"{major}.{minor}"}


def cufile(library: Any) -> dict[str, Any]:
    """Ask cuFile."""
    version = numbers(library.cuFileGetVersion, count=1)[0]
    return {"version": f"{version // 1000}.{version % 1000 // 10}"}


def ucp(library: Any) -> dict[str, Any]:
    """Ask UCX."""
    library.ucp_get_version_string.restype = ctypes.c_char_p
    return {"version": library.ucp_get_version_string().decode()}


def core(library: Any) -> dict[str, Any]:
    """Ask libpeerway."""
    library.pw_version.restype = ctypes.c_char_p
    return {"version": library.pw_version().decode()}


def verbs(_library: Any) -> dict[str, Any]:
    """No version, because libibverbs has no call for it."""
    return {"version": ""}


KINDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "nvrtc": nvrtc,
    "gdrapi": gdrapi,
    "cufile": cufile,
    "ucp": ucp,
    "core": core,
    "verbs": verbs,
}


def loaded_path(candidate: str) -> str:
    """Where the loader found a soname, read from this process's own memory map."""
    if "/" in candidate:
        return candidate
    stem = candidate.split(".so", maxsplit=1)[0] + ".so"
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if path.rpartition("/")[2].startswith(stem):
                return path
    return candidate


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Load the first candidate that loads."""
    problem = ""
    for candidate in question["candidates"]:
        try:
            library = ctypes.CDLL(candidate)
        except OSError as error:
            if "/" in candidate or not problem:
                problem = str(error)
            continue
        try:
            return {"path": loaded_path(candidate), **KINDS[question["kind"]](library)}
        except AttributeError as error:
            return {"path": loaded_path(candidate), "error": f"it has no version call ({error})"}
    return {"path": "", "error": problem}


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
