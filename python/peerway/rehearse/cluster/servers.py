"""File servers of the copy: GlusterFS from a volume file for the server and one for the clients, as an
administrator writes them, and scripts that start them and drop the server's cache. All lie in the copy, where
steps of an upgrade change them.
"""

from __future__ import annotations

from pathlib import Path

from peerway.rehearse.cluster.description import FileSystem

PROGRAMS = ("glusterfsd", "glusterfs")
PACKAGES = "glusterfs-server glusterfs-client"
_PORT, _DROP_PORT = 24007, 24107

SERVER = """volume posix
  type storage/posix
  option directory {brick}
end-volume
volume locks
  type features/locks
  subvolumes posix
end-volume
volume threads
  type performance/io-threads
  option thread-count {threads}
  subvolumes locks
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.socket.listen-port {port}
  option auth.addr.threads.allow *
  subvolumes threads
end-volume
"""

CLIENT = """volume remote
  type protocol/client
  option transport-type tcp
  option remote-host {address}
  option remote-port {port}
  option remote-subvolume threads
end-volume
volume behind
  type performance/write-behind
  subvolumes remote
end-volume
"""

CACHE = """volume cache
  type performance/io-cache
  option cache-size {cache_mb}MB
  subvolumes behind
end-volume
"""

# Each ends with status 0 when what it starts answers, else says why not.
SERVE = """#!/bin/sh
# Start the server of /{name}.
log={folder}/log/{name}-server.log
setsid dropper-{name} </dev/null >/dev/null 2>&1 &
glusterfsd -f /etc/glusterfs/{name}-server.vol -l "$log" -p /run/{name}-server.pid && exit 0
echo "the server of /{name} does not start: $(grep ' E ' "$log" | tail -n 3)" >&2
exit 1
"""

# On the server, which all clients may ask: it says what is still there.
DROPPER = """#!/usr/bin/python3
import os, socket, subprocess
try:
    listener = socket.create_server(("", {drop_port}))
except OSError:
    raise SystemExit  # one is at work
while True:
    connection, _ = listener.accept()
    with connection:
        files = [os.path.join(at, name) for at, _, names in os.walk("{brick}") for name in names]
        left = 0
        for file in files:
            try:
                with open(file, "rb") as stream:
                    os.fsync(stream.fileno())
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                left += int(subprocess.check_output(["fincore", "-b", "-n", "-o", "RES", file]))
            except (OSError, subprocess.CalledProcessError):
                if os.path.exists(file):
                    left += 1
        connection.sendall(str(left).encode())
"""

DROP = """#!/usr/bin/python3
# Let the server of /{name} drop what its cache holds of all files; status 0: it holds nothing of them.
import socket, sys
with socket.create_connection(("{address}", {drop_port}), 60) as server:
    left = server.makefile().read()
sys.exit(0 if left == "0" else f"the server of /{name} still holds {{left or 'some'}} bytes in its cache")
"""

MOUNT = """#!/bin/sh
# Mount /{name} on this host, anew where it is mounted.
umount -l /{name} 2>/dev/null
log={folder}/log/{name}-$(hostname).log
options="{options} --entry-timeout=0 --attribute-timeout=0"
glusterfs -f /etc/glusterfs/{name}-client.vol -l "$log" $options /{name}
for turn in $(seq 100); do
  timeout 5 stat -f -c %T /{name} 2>/dev/null | grep -q fuse && timeout 5 ls /{name} >/dev/null 2>&1 && exit 0
  sleep 0.1
done
echo "/{name} cannot be mounted on $(hostname): $(tail -n 3 "$log")" >&2
exit 1
"""


def texts(system: FileSystem, folder: Path, address: str) -> dict[str, str]:
    """The files of a file system by their places in the copy."""
    known = {
        "name": system.name,
        "folder": folder,
        "brick": brick(system, folder),
        "threads": system.threads,
        "port": _PORT,
        "drop_port": _DROP_PORT,
        "address": address,
        "cache_mb": system.cache_mb,
        "options": f"--direct-io-mode={'disable' if system.cache_mb else 'enable'}",
    }
    client = CLIENT + (CACHE if system.cache_mb else "")
    return {
        f"/etc/glusterfs/{system.name}-server.vol": SERVER.format(**known),
        f"/etc/glusterfs/{system.name}-client.vol": client.format(**known),
        f"/usr/local/sbin/serve-{system.name}": SERVE.format(**known),
        f"/usr/local/sbin/dropper-{system.name}": DROPPER.format(**known),
        f"/usr/local/sbin/drop-{system.name}": DROP.format(**known),
        f"/usr/local/sbin/mount-{system.name}": MOUNT.format(**known),
    }


def brick(system: FileSystem, folder: Path) -> Path:
    """Where the server keeps the files."""
    return folder / "bricks" / system.name
