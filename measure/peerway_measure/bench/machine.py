"""Collects facts about where a record was made: host, CPU or GPU, driver, version, command."""

from __future__ import annotations

import re
import shlex
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from peerway import _core

NVIDIA_VERSION = Path("/proc/driver/nvidia/version")


def known() -> dict[str, str]:
    """The fields of a record that are the same for all results of one run on host memory."""
    return {
        "host": socket.gethostname(),
        "device": device_name("host"),
        "driver": "",
        "version": _core.version(),
        "command": command(),
    }


def command() -> str:
    """The command line of this process, as a person would type it."""
    program = Path(sys.argv[0]).name
    return shlex.join(["peerway" if program in ("peerway", "__main__.py") else program, *sys.argv[1:]])


def recorded_command(words: Iterable[str], names: Mapping[Path, str]) -> str:
    """A command as records keep it. These paths exist only on this machine, so only their file names are
    kept.
    """
    return shlex.join(_renamed(word, names) for word in words)


def _renamed(word: str, names: Mapping[Path, str]) -> str:
    option, equals, value = word.partition("=")
    if option.startswith("-") and equals:
        return f"{option}={names.get(Path(value), value)}"
    return names.get(Path(word), word)


def device_name(device: str) -> str:
    """The hardware behind "host" or "cuda:0"; "" for a device that does not exist here."""
    return dict(_core.devices()).get(device, "")


def has_cuda() -> bool:
    """Whether any GPU can be used."""
    return any(name.startswith("cuda") for name, _ in _core.devices())


def memory_pairs() -> list[tuple[str, str]]:
    """Every pair of kinds of memory on this host, source first.

    Memory that Peerway did not allocate (malloc's, NumPy's) is a kind of its own: peers can read and write
    it, but cannot map it.
    """
    kinds = ("host", "cuda") if has_cuda() else ("host",)
    return [*((source, target) for source in kinds for target in kinds), ("host:malloc", "host:malloc")]


def cuda_driver() -> str:
    """The NVIDIA kernel driver's version; "" without one."""
    try:
        # "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
        match = re.search(r"Module\b.*?\s(\d+\.\d[\d.]*)", NVIDIA_VERSION.read_text())
    except OSError:
        return ""
    return match[1] if match else ""
