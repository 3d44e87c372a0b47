"""Facts about a file system that are known without touching it: its mount, its versions, its client's
counters.

Everything is read below a root folder, so that tests can imitate any client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
_NFS = ("nfs", "nfs4")
_MEMORY = ("tmpfs", "ramfs", "hugetlbfs")
_GLUSTERFS = ("usr/lib/*/glusterfs", "usr/lib64/glusterfs", "usr/lib/glusterfs")  # a folder for each version
_BALLOON, _REPORTS_FREE_PAGES = "0x0005", 5  # virtio's numbers of the device and of the feature
_LUSTRE_SETTINGS = ("checksums", "max_dirty_mb", "max_pages_per_rpc", "max_rpcs_in_flight")
_LUSTRE_FOLDERS = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre")


@dataclass(frozen=True)
class Place:
    """A mounted file system. `kind` says where evidence about its caches comes from: lustre, nfs, fuse,
    memory, or local.
    """

    mount_point: str
    file_system: str
    source: str
    options: str
    kind: str


@dataclass(frozen=True)
class Counter:
    """The bytes that the client has fetched from its servers since the mount, and the file with
    this counter.
    """

    name: str
    fetched: int


def find(folder: Path, device: str, root: Path = ROOT) -> Place:
    """The mount of a folder: found by its device ("8:1"), or else by its path."""
    mounts = [mount for line in _text(root / "proc/self/mountinfo").splitlines() if (mount := _mount(line))]
    own = [place for number, place in mounts if number == device] or [place for _, place in mounts]
    around = [place for place in own if Path(place.mount_point) in (folder, *folder.parents)]
    if around:  # of several mounts at the same point, the last counts
        return max(reversed(around), key=lambda place: len(place.mount_point))
    by_link = [place for number, place in mounts if number == device]
    return by_link[-1] if by_link else Place("", "unknown", "", "", "unknown")


def _mount(line: str) -> tuple[str, Place] | None:
    head, _, tail = line.partition(" - ")
    words, rest = head.split(), tail.split()
    if len(words) < 6 or len(rest) < 2:
        return None
    options = dict.fromkeys([*words[5].split(","), *(rest[2].split(",") if len(rest) > 2 else [])])
    place = Place(
        _unescaped(words[4]), rest[0], _unescaped(rest[1]), ",".join(options), _kind(rest[0], rest[1])
    )
    return words[2], place


def counter(place: Place, root: Path = ROOT) -> Counter | None:
    """The client's counter now; None if there is none, or if this user may not read it."""
    if place.kind == "nfs":
        return _of_nfs(_text(root / "proc/self/mountstats"), place.mount_point)
    if place.kind == "lustre":
        return _of_lustre(place, root)
    return None


def moved_by_disk(device: str, root: Path = ROOT) -> int | None:
    """The bytes that a block device ("8:1") has read and written for all processes; None if it is no block
    device.
    """
    words = _text(root / "sys/dev/block" / device / "stat").split()
    return (int(words[2]) + int(words[6])) * 512 if len(words) > 6 else None


def versions(place: Place, root: Path = ROOT) -> dict[str, str]:
    """client_version and server_version, as far as they can be determined."""
    fields = {}
    if place.kind == "lustre":
        lines = _text(root / "sys/fs/lustre/version") or _text(root / "proc/fs/lustre/version")
        fields["client_version"] = lines.replace("lustre:", "").strip().partition("\n")[0]
        imports = [text for file in _lustre_files(place, root, "import") if (text := _text(file))]
        targets = {m[1] for text in imports if (m := re.search(r"target_version:\s*(\S+)", text))}
        fields["server_version"] = ", ".join(sorted(targets))
    if place.file_system == "fuse.glusterfs":
        installed = {path.name for parts in _GLUSTERFS for path in root.glob(f"{parts}/[0-9]*")}
        fields["client_version"] = ", ".join(sorted(installed))
    if place.kind == "nfs" and (match := re.search(r"\bvers=([\d.]+)", place.options)):
        fields["protocol_version"] = f"NFS {match[1]}"
    return {name: text for name, text in fields.items() if text}


def settings(place: Place, root: Path = ROOT) -> str:
    """The settings of Lustre's client for this file system: "checksums=1 max_dirty_mb=32 ..."; "" for other
    file systems.
    """
    if place.kind != "lustre":
        return ""
    by_name = {
        name: sorted({_text(file).strip() for file in _lustre_files(place, root, name)} - {""})
        for name in _LUSTRE_SETTINGS
    }
    return " ".join(f"{name}={'/'.join(values)}" for name, values in by_name.items() if values)


def memory_goes_back(root: Path = ROOT) -> bool:
    """Whether this virtual machine returns free memory to its host: it has a virtio balloon that reports free
    pages.
    """
    for device in (root / "sys/bus/virtio/devices").glob("*"):
        features = _text(device / "features").strip()
        if _text(device / "device").strip() == _BALLOON and features[_REPORTS_FREE_PAGES:][:1] == "1":
            return True
    return False


def _of_nfs(text: str, mount_point: str) -> Counter | None:
    inside = False
    for line in text.splitlines():
        if line.startswith("device "):
            match = re.fullmatch(r"device .* mounted on (.*) with fstype (\S+).*", line)
            inside = bool(match and _unescaped(match[1]) == mount_point)
        elif inside and line.strip().startswith("bytes:"):
            numbers = line.split()[1:]
            # bytes of: normal reads and writes, direct reads and writes, reads from and writes to the server
            return Counter("NFS mountstats", int(numbers[4])) if len(numbers) > 4 else None
    return None


def _of_lustre(place: Place, root: Path) -> Counter | None:
    total, seen = 0, False
    for file in _lustre_files(place, root, "stats"):
        text = _text(file)
        seen = seen or bool(text)
        if match := re.search(r"^read_bytes\s+\d+ samples \[bytes\] \d+ \d+ (\d+)", text, re.MULTILINE):
            total += int(match[1])
    return Counter("Lustre osc", total) if seen else None


def _lustre_files(place: Place, root: Path, name: str) -> list[Path]:
    """Files about the client's connections to the targets of this file system."""
    system = place.source.rpartition("/")[2]  # "mgs@tcp:/scratch"
    for folder in _LUSTRE_FOLDERS:
        if re.fullmatch(r"[\w-]+", system) and (
            files := sorted((root / folder / "osc").glob(f"{system}-OST*/{name}"))
        ):
            return files
    return []


def _kind(file_system: str, source: str) -> str:
    if file_system in _NFS:
        return "nfs"
    if file_system == "lustre":
        return "lustre"
    if file_system in _MEMORY:
        return "memory"
    if file_system.startswith("fuse") and file_system != "fuseblk":
        return "fuse"
    return (
        "local"
        if source.startswith("/dev/") or file_system in ("overlay", "btrfs", "zfs", "fuseblk")
        else "unknown"
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
