"""The network cards that the tests between processes run over, by the names of their paths."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "nic" / "example.cpp"
STATED = "PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS"
# The example card, and the same stating less than it keeps: for each combination of promises there is a way.
PROMISES = {
    "nic:example": STATED,
    "nic:example-ordered": "PW_NIC_PUTS_IN_ORDER",
    "nic:example-behind": "PW_NIC_GETS_BEHIND_PUTS",
    "nic:example-none": "0",
}
PATHS = ["nic:example"]
ALL_PATHS = list(PROMISES)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="peerway-cards-")


@functools.cache
def plugin(path: str) -> Path:
    """The plugin of a path, compiled as its author would."""
    name = path.removeprefix("nic:")
    text = EXAMPLE.read_text()
    assert STATED in text
    assert '"example"' in text
    source = Path(_folder().name) / f"{name}.cpp"
    source.write_text(text.replace(STATED, PROMISES[path]).replace('"example"', f'"{name}"'))
    library = source.with_name(f"lib{name}.so")
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
    return library


def settings_of(path: str) -> dict[str, str]:
    """What ranks need to have in their environment so that there is such a path."""
    return {"PEERWAY_NIC": str(plugin(path))} if path in PROMISES else {}
