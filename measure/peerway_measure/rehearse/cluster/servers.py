"""The file servers of the copy, of several kinds, and the scripts that start them, mount their file systems,
and drop a server's cache.

All of them lie in the copy, where the steps of an upgrade can change them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from peerway_measure.rehearse.cluster import ganesha, glusterfs
from peerway_measure.rehearse.cluster.description import FileSystem

KINDS = {"glusterfs": glusterfs, "nfs": ganesha}
KERNEL = Path("/proc/filesystems")
_DROP_PORT = 24107

# Runs on the server for any client. It prints how much is still cached.
DROPPER = """#!/usr/bin/python3
import os, socket, subprocess, time
try:
    listener = socket.create_server(("", {drop_port}))
except OSError:
    raise SystemExit  # one is at work
def held(file):
    try:
        with open(file, "rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return int(subprocess.check_output(["fincore", "-b", "-n", "-o", "RES", file]))
    except (OSError, subprocess.CalledProcessError):
        return int(os.path.exists(file))
while True:
    connection, _ = listener.accept()
    with connection:
        files = [os.path.join(at, name) for at, _, names in os.walk("{brick}") for name in names]
        until = time.monotonic() + 10  # the kernel keeps a page that it is at work on
        while (left := sum(map(held, files))) and time.monotonic() < until:
            time.sleep(0.1)
        connection.sendall(str(left).encode())
"""

DROP = """#!/usr/bin/python3
# Let the server of /{name} drop what its cache holds of all files; status 0: it holds nothing of them.
import socket, sys
with socket.create_connection(("{address}", {drop_port}), 60) as server:
    left = server.makefile().read()
sys.exit(0 if left == "0" else f"the server of /{name} still holds {{left or 'some'}} bytes in its cache")
"""


def programs(systems: Iterable[FileSystem]) -> tuple[list[str], str]:
    """The programs that these kinds of file systems need, and the packages with them."""
    kinds = [KINDS[kind] for kind in dict.fromkeys(system.kind for system in systems)]
    return [name for kind in kinds for name in kind.PROGRAMS], " ".join(kind.PACKAGES for kind in kinds)


def why_not(systems: Iterable[FileSystem], kernel: Path = KERNEL) -> str:
    """Why this machine's kernel cannot mount one of these; "" if it can mount all."""
    known = kernel.read_text().split()
    for system in systems:
        needed = KINDS[system.kind].IN_KERNEL
        if needed and needed not in known:
            return (
                f"/{system.name} is of the kind {system.kind}, which this kernel cannot mount: {kernel} has "
                f"no {needed}; `modprobe {needed}` adds it where its module is installed"
            )
    return ""


def texts(system: FileSystem, folder: Path, address: str) -> dict[str, str]:
    """The files of a file system: path in the copy -> content."""
    kind = KINDS[system.kind]
    known = {
        "name": system.name,
        "folder": folder,
        "brick": brick(system, folder),
        "threads": system.threads,
        "address": address,
        "drop_port": _DROP_PORT,
        **kind.facts(system),
    }
    files = {
        **kind.CONFIGURATION,
        "/usr/local/sbin/serve-{name}": kind.SERVE,
        "/usr/local/sbin/mount-{name}": kind.MOUNT,
        "/usr/local/sbin/dropper-{name}": DROPPER,
        "/usr/local/sbin/drop-{name}": DROP,
    }
    return {place.format(**known): text.format(**known) for place, text in files.items()}


def brick(system: FileSystem, folder: Path) -> Path:
    """The folder in which the server keeps the files."""
    return folder / "bricks" / system.name
