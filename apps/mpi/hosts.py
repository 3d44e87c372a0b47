"""Simulated hosts on one machine: network namespaces on one bridge, and a namespace for the launcher of jobs.

Nothing is visible outside, because the bridge is in the launcher's namespace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NET = "10.213.7"
RANKS_NET = f"{NET}.0/29"  # the addresses of the hosts, without the launcher
LAUNCHER = f"{NET}.254"


def address(host: int) -> str:
    """The address of a host."""
    return f"{NET}.{host + 1}"


class NoHosts(Exception):
    """The namespaces cannot be set up; the message says why."""


@dataclass(frozen=True)
class Network:
    """Namespaces as hosts: host n has the address 10.213.7.(n+1)."""

    names: list[str]
    head: str  # the launcher's namespace

    def from_head(self, command: list[str]) -> list[str]:
        """The command that runs this command in the launcher's namespace."""
        return ["ip", "netns", "exec", self.head, *command]

    def agent(self, folder: Path) -> Path:
        """Write a script that MPI launchers use instead of ssh: `agent HOST COMMAND...`."""
        script = folder / "agent"
        script.write_text(
            '#!/bin/sh\nhost=$1; shift\nexec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"\n'
        )
        script.chmod(0o755)
        return script

    def sent(self, host: int) -> int:
        """The bytes that a host has sent, counted by its kernel."""
        file = "/sys/class/net/eth0/statistics/tx_bytes"
        command = ["ip", "netns", "exec", self.names[host], "cat", file]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    @contextmanager
    def without_tcp(self) -> Iterator[None]:
        """Block TCP between the hosts while the block runs; TCP to the launcher still works."""
        rule = ["blackhole", "to", RANKS_NET, "ipproto", "tcp", "priority", "10"]
        for name in self.names:
            must(["-n", name, "rule", "add", *rule])
        try:
            yield
        finally:
            for name in self.names:
                must(["-n", name, "rule", "del", *rule])


def mpi_words(openmpi: bool, addresses: list[str], agent: Path) -> list[str]:
    """The arguments for Open MPI's or MPICH's launcher in its namespace, to start a rank on each address."""
    if openmpi:
        return ["--mca", "plm_rsh_agent", str(agent), "-H", ",".join(addresses)]
    return [
        "-iface",
        "bridge",
        "-launcher",
        "rsh",
        "-launcher-exec",
        str(agent),
        "-hosts",
        ",".join(addresses),
    ]


def must(arguments: list[str]) -> None:
    """Run `ip`; it must succeed."""
    done = ip(*arguments)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}"


def ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `ip`."""
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


@contextmanager
def network(hosts: int) -> Iterator[Network]:
    """Set up the namespaces while the block runs. Raises NoHosts."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        raise NoHosts("network namespaces need root and iproute2")
    _sweep()
    tag = f"peerway{os.getpid()}"
    created = Network([f"{tag}n{i}" for i in range(hosts)], f"{tag}h")
    try:
        for step in _steps(created):
            done = ip(*step)
            if done.returncode != 0:
                raise NoHosts(f"no network namespaces here: ip {' '.join(step)}: {done.stderr.strip()}")
        yield created
    finally:
        for name in [*created.names, created.head]:
            ip("netns", "del", name)


def _sweep() -> None:
    """Remove namespaces that killed processes left."""
    for name in sorted(path.name for path in Path("/run/netns").glob("peerway*")):
        owner = re.fullmatch(r"peerway(\d+)[nh]\d*", name)
        if owner is not None and not Path("/proc", owner[1]).exists():
            ip("netns", "del", name)


def _steps(network: Network) -> Iterator[list[str]]:
    head = ["-n", network.head]
    yield ["netns", "add", network.head]
    yield [*head, "link", "set", "lo", "up"]
    yield [*head, "link", "add", "bridge", "type", "bridge"]
    yield [*head, "addr", "add", f"{LAUNCHER}/24", "dev", "bridge"]
    yield [*head, "link", "set", "bridge", "up"]
    for i, name in enumerate(network.names):
        port = f"port{i}"
        pair = ["type", "veth", "peer", "name", "eth0", "netns", name]
        yield ["netns", "add", name]
        yield [*head, "link", "add", port, "mtu", "9000", *pair]
        yield [*head, "link", "set", port, "master", "bridge", "up"]
        yield ["-n", name, "link", "set", "eth0", "mtu", "9000"]
        yield ["-n", name, "addr", "add", f"{address(i)}/24", "dev", "eth0"]
        yield ["-n", name, "link", "set", "eth0", "up"]
        yield ["-n", name, "link", "set", "lo", "up"]
