"""The network cards that the tests between processes run over, by the names of their paths."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"nic:example": "examples/nic/example.cpp"}
PATHS = list(SOURCES)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="peerway-cards-")


@functools.cache
def plugin(path: str, *options: str) -> Path:
    """The plugin of a path, compiled as its author would."""
    source = ROOT / SOURCES[path]
    library = Path(_folder().name) / f"lib{source.stem}{len(options)}.so"
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run(["c++", *flags, *options, str(source), "-o", str(library)], check=True)
    return library


def settings_of(path: str) -> dict[str, str]:
    """What ranks need to have in their environment so that there is such a path."""
    return {"PEERWAY_NIC": str(plugin(path))} if path in SOURCES else {}
