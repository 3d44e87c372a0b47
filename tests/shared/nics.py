"""The NICs that the tests between processes use, by the names of their paths."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from launching import ROOT, compile_nic, made_once, source_of

from peerway import _core
from peerway_measure.tune import draft

EXAMPLE = ROOT / "examples" / "nic" / "example.cpp"
STATED = "PW_NIC_PUTS_IN_ORDER | PW_NIC_GETS_BEHIND_PUTS"
# The example NIC, and variants that state fewer guarantees than it keeps: there is code for each combination.
GUARANTEES = {
    "nic:example": STATED,
    "nic:example-ordered": "PW_NIC_PUTS_IN_ORDER",
    "nic:example-behind": "PW_NIC_GETS_BEHIND_PUTS",
    "nic:example-none": "0",
}
HELD_BACK = {"seed": 7, "reorder": {"probability": 0.2, "us": 200}}
LOSSES = {"seed": 7, "drop": 0.02, "duplicate": 0.02, "corrupt": 0.02}
# The torus over shared memory and over datagrams, and variants that break each guarantee they do not state.
TORUS: dict[str, dict[str, object]] = {
    "nic:torus": {},
    "nic:torus-udp": {"faults": LOSSES},
    "nic:torus-ordered": {"guarantees": ["puts_in_order"], "faults": HELD_BACK},
    "nic:torus-behind": {"guarantees": ["gets_behind_puts"], "faults": HELD_BACK},
    "nic:torus-none": {"guarantees": [], "faults": HELD_BACK},
}
# A datagram that finds its target closed is dropped, and the sender does not learn it.
UNTOLD = {"nic:torus-udp"}
PATHS = ["nic:example", "nic:torus"]
FULL = "nic:full"  # a NIC with every optional entry
ALL_PATHS = [*GUARANTEES, FULL, *TORUS]
# The torus variants have the same guarantees and break the others; these example variants keep them.
IN_LONG_RUNS = ("nic:example-ordered", "nic:example-behind")


def others() -> list[Any]:
    """All paths except PATHS, as parameters of a test."""
    long = pytest.mark.long
    rest = [path for path in ALL_PATHS if path not in PATHS]
    return [pytest.param(path, marks=long) if path in IN_LONG_RUNS else path for path in rest]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="peerway-NICs-")


@functools.cache
def plugin(path: str) -> Path:
    """The example's plugin of a path, compiled as its author would compile it."""
    name = path.removeprefix("nic:")
    text = EXAMPLE.read_text()
    assert STATED in text
    assert '"example"' in text
    text = text.replace(STATED, GUARANTEES[path]).replace('"example"', f'"{name}"')
    folder = _folder_of(text)
    with made_once(folder) as make:
        if make:
            (folder / f"{name}.cpp").write_text(text)
            compile_nic(folder / f"{name}.cpp", folder)
    return folder / f"lib{name}.so"


@functools.cache
def full_nic() -> Path:
    """The plugin with every optional entry."""
    source = source_of("full_nic.cpp")
    folder = _folder_of(source.read_text() + source.with_suffix(".h").read_text())
    with made_once(folder) as make:
        if make:
            compile_nic(source, folder)
    return folder / f"lib{source.stem}.so"


def _folder_of(text: str) -> Path:
    """The folder in which all test processes share the plugin of this text, until the text changes."""
    interface = (ROOT / "library" / "include" / "peerway" / "nic.h").read_text()
    return ROOT / "build" / "test-nics" / hashlib.sha256((text + interface).encode()).hexdigest()[:16]


@functools.cache
def torus_file(path: str) -> Path:
    """Write the torus file of a path; returns it."""
    file = Path(_folder().name) / f"{path.removeprefix('nic:')}.json"
    file.write_text(json.dumps(TORUS[path]))
    return file


def settings_of(path: str) -> dict[str, str]:
    """The environment variables with which ranks have this path."""
    if path in GUARANTEES:
        return {"PEERWAY_NIC": str(plugin(path))}
    if path == FULL:
        return {"PEERWAY_NIC": str(full_nic())}
    if path in TORUS:
        return {"PEERWAY_NIC": f"{path.removeprefix('nic:')}=torus?file={torus_file(path)}"}
    return {}


def table_that_splits(nic: str, other: str) -> str:
    """A route table that splits large puts between a NIC and another path,
    and sends small ones over the NIC alone.
    """
    case = ("put", "contiguous", "host->host")
    sizes = (8, 1 << 20, 16 << 20)
    costs = {
        case: {
            nic: [(size, 1 + size / 4000, 0.0) for size in sizes],
            other: [(size, 5 + size / 4000, 0.0) for size in sizes],
        }
    }
    parts = [(nic, 128), (other, 128)]
    both = draft.split_entry(case, parts, [(size, 10 + size / 8000, 0.0) for size in sizes[1:]])
    return _core.table_text(json.dumps(draft.table(costs, [both], {}, {}, 65536)))
