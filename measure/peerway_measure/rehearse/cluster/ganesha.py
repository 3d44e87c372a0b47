"""NFS in the copy: the server is NFS-Ganesha, outside the kernel; the client is the kernel's, if it
has one.
"""

from __future__ import annotations

from peerway_measure.rehearse.cluster.description import FileSystem

PROGRAMS = ("ganesha.nfsd", "mount.nfs4")
PACKAGES = "nfs-ganesha nfs-ganesha-vfs nfs-common"
IN_KERNEL = "nfs4"

SERVER = """NFS_CORE_PARAM {{
  Protocols = 4;
  Enable_NLM = false;
  Enable_RQUOTA = false;
  RPC_Ioq_ThrdMax = {threads};
}}
NFSv4 {{
  RecoveryRoot = {folder}/nfs/{name};
  Graceless = true;
  Only_Numeric_Owners = true;
}}
EXPORT {{
  Export_Id = 1;
  Path = {brick};
  Pseudo = /{name};
  Access_Type = RW;
  Squash = No_Root_Squash;
  SecType = sys;
  Protocols = 4;
  Transports = TCP;
  FSAL {{ Name = VFS; }}
}}
"""

# Each script ends with status 0 once the program that it starts answers; otherwise it prints why not.
SERVE = """#!/bin/sh
# Start the server of /{name}.
log={folder}/log/{name}-server.log
mkdir -p /run/ganesha {folder}/nfs/{name}
setsid dropper-{name} </dev/null >/dev/null 2>&1 &
: >"$log"
ganesha.nfsd -f /etc/ganesha/{name}.conf -L "$log" -p /run/{name}-server.pid -N NIV_EVENT
for turn in $(seq 300); do
  grep -q -E ':EXPORT :CRIT|:FATAL' "$log" && break
  grep -q 'NFS SERVER INITIALIZED' "$log" && exit 0
  sleep 0.1
done
echo "the server of /{name} does not start: $(grep -E ':(CRIT|FATAL) ' "$log" | tail -n 3)" >&2
exit 1
"""

# soft: the server may end with the copy, and a host must not wait for it for ever
MOUNT = """#!/bin/sh
# Mount /{name} on this host, anew where it is mounted.
umount -l /{name} 2>/dev/null
for turn in $(seq 50); do
  why=$(timeout 10 mount -t nfs4 -o proto=tcp,soft,timeo=100 {address}:/{name} /{name} 2>&1) && exit 0
  sleep 0.1
done
echo "/{name} cannot be mounted on $(hostname): $why" >&2
exit 1
"""

CONFIGURATION = {"/etc/ganesha/{name}.conf": SERVER}


def facts(_system: FileSystem) -> dict[str, object]:
    """The values for the templates that only this kind of file system has."""
    return {}
