"""Network namespaces that are joined by a bridge, for as long as they are needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


class NoSpaces(RuntimeError):
    """Why there can be none."""


def address(index: int) -> str:
    """The IPv4 address of namespace `index`."""
    return f"10.213.7.{index + 1}"


@contextmanager
def joined(count: int) -> Iterator[list[str]]:
    """Make `count` of them, of frames up to 9000 bytes; gives their names. Raises NoSpaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        raise NoSpaces("network namespaces need root, and `ip` of iproute2")
    tag = f"pwt{os.getpid() % 100000}"
    names = [f"{tag}n{i}" for i in range(count)]
    try:
        _must("link", "add", f"{tag}b", "type", "bridge")
        _must("link", "set", f"{tag}b", "up")
        for i, name in enumerate(names):
            _join(name, f"{tag}v{i}", f"{tag}b", address(i))
        yield names
    finally:
        for name in names:
            _ip("netns", "del", name)
        _ip("link", "del", f"{tag}b")


def _join(name: str, veth: str, bridge: str, own: str) -> None:
    _must("netns", "add", name)
    _must("link", "add", veth, "mtu", "9000", "type", "veth", "peer", "name", "eth0", "netns", name)
    _must("-n", name, "link", "set", "eth0", "mtu", "9000")
    _must("link", "set", veth, "master", bridge, "up")
    _must("-n", name, "addr", "add", f"{own}/24", "dev", "eth0")
    _must("-n", name, "link", "set", "eth0", "up")
    _must("-n", name, "link", "set", "lo", "up")


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


def _must(*arguments: str) -> None:
    done = _ip(*arguments)
    if done.returncode != 0:
        raise NoSpaces(f"no network namespaces here: ip {' '.join(arguments)}: {done.stderr.strip()}")
