"""GlusterFS in the copy: volume files for the server and the clients, as an administrator writes them."""

from __future__ import annotations

from peerway_measure.rehearse.cluster.description import FileSystem

PROGRAMS = ("glusterfsd", "glusterfs")
PACKAGES = "glusterfs-server glusterfs-client"
IN_KERNEL = ""  # the file system that /proc/filesystems must list: none, since FUSE is loaded when it is used
_PORT = 24007

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

# Each script ends with status 0 once the program that it starts answers; otherwise it prints why not.
SERVE = """#!/bin/sh
# Start the server of /{name}.
log={folder}/log/{name}-server.log
setsid dropper-{name} </dev/null >/dev/null 2>&1 &
glusterfsd -f /etc/glusterfs/{name}-server.vol -l "$log" -p /run/{name}-server.pid && exit 0
echo "the server of /{name} does not start: $(grep ' E ' "$log" | tail -n 3)" >&2
exit 1
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

CONFIGURATION = {
    "/etc/glusterfs/{name}-server.vol": SERVER,
    "/etc/glusterfs/{name}-client.vol": CLIENT + "{cache}",
}


def facts(system: FileSystem) -> dict[str, object]:
    """The values for the templates that only this kind of file system has."""
    return {
        "port": _PORT,
        "cache": CACHE.format(cache_mb=system.cache_mb) if system.cache_mb else "",
        "options": f"--direct-io-mode={'disable' if system.cache_mb else 'enable'}",
    }
