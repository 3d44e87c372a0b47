"""A file system in memory, mounted through FUSE, one of whose operations fails from some byte or time on:
what a real one does only when its server, its device or its quota is at fault.

`python failing_file_system.py FOLDER OPERATION ERRNO FROM COMMAND...` mounts it at FOLDER, in the caller's
mount namespace, runs the command there, and prints in its last line which files are left. OPERATION is one
of NAMES; FROM the first byte of a write or read that fails, else how many go well before; ERRNO a name such
as ESTALE, or `hang`: no answer. Needs root, but no libfuse: the few requests of the protocol that are needed
are answered by hand.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import stat
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass, field

LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME = 1, 2, 3, 4, 9, 10, 11, 12
OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = 14, 15, 16, 17, 18, 20, 25, 26
OPENDIR, READDIR, RELEASEDIR, ACCESS, CREATE, INTERRUPT, BATCH_FORGET = 27, 28, 29, 34, 35, 36, 42
NAMES = {"write": WRITE, "read": READ, "fsync": FSYNC, "close": FLUSH, "create": CREATE, "mkdir": MKDIR}
LARGEST = 1 << 20
SIZE_GIVEN = 1 << 3  # in a SETATTR
Names = dict[bytes, int]


@dataclass
class Node:
    """A file or a folder."""

    mode: int
    data: bytearray = field(default_factory=bytearray)
    names: Names = field(default_factory=dict)


class FileSystem:
    """Answers requests, except those that are to fail."""

    def __init__(self, operation: str, why: str, first: int) -> None:
        self._fails, self._why, self._first = NAMES[operation], why, first
        self.nodes = {1: Node(stat.S_IFDIR | 0o777)}
        self._numbers = itertools.count(2)
        self._counter = itertools.count()

    def answer(self, opcode: int, number: int, body: bytes) -> tuple[int, bytes] | None:
        """The errno and the data of an answer; None for no answer."""
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if opcode == self._fails and self._at(opcode, body) >= self._first:
            return None if self._why == "hang" else (getattr(errno, self._why), b"")
        node = self.nodes.get(number)
        if node is None and opcode != INIT:
            return errno.ESTALE, b""
        return self._done(opcode, number, node or self.nodes[1], body)

    def _at(self, opcode: int, body: bytes) -> int:
        moves = opcode in (READ, WRITE)
        return int(struct.unpack_from("<Q", body, 8)[0]) if moves else next(self._counter)

    def _done(self, opcode: int, number: int, node: Node, body: bytes) -> tuple[int, bytes]:  # noqa: C901
        match opcode:
            case 26:
                return 0, struct.pack(
                    "<IIIIHHIIHHI7I", 7, 31, 1 << 17, 1 << 5, 16, 12, LARGEST, 1, 256, *[0] * 9
                )
            case 1:
                child = node.names.get(body.rstrip(b"\0"))
                return (0, self._entry(child)) if child else (errno.ENOENT, b"")
            case 3:
                return 0, struct.pack("<QII", 0, 0, 0) + self._attributes(number)
            case 4:
                valid, _, _, size = struct.unpack_from("<IIQQ", body)
                if valid & SIZE_GIVEN:
                    del node.data[size:]
                    node.data.extend(bytes(size - len(node.data)))
                return 0, struct.pack("<QII", 0, 0, 0) + self._attributes(number)
            case 9:
                mode = struct.unpack_from("<I", body)[0]
                return 0, self._entry(self._add(node, body[8:], stat.S_IFDIR | mode))
            case 35:
                mode = struct.unpack_from("<I", body, 4)[0]
                created = self._add(node, body[16:], stat.S_IFREG | mode)
                return 0, self._entry(created) + struct.pack("<QII", 0, 0, 0)
            case 10 | 11:
                name = body.rstrip(b"\0")
                if name not in node.names:
                    return errno.ENOENT, b""
                del self.nodes[node.names.pop(name)]
                return 0, b""
            case 14 | 27:
                return 0, struct.pack("<QII", 0, 0, 0)
            case 15:
                _, offset, size = struct.unpack_from("<QQI", body)
                return 0, bytes(node.data[offset : offset + size])
            case 16:
                _, offset, size = struct.unpack_from("<QQI", body)
                node.data.extend(bytes(max(0, offset + size - len(node.data))))
                node.data[offset : offset + size] = body[40 : 40 + size]
                return 0, struct.pack("<II", size, 0)
            case 17:
                return 0, struct.pack("<5Q4I6I", *[1 << 20] * 5, 4096, 255, 4096, *[0] * 7)
            case 28:
                return 0, self._listing(node, body)
            case 18 | 20 | 25 | 29 | 34:
                return 0, b""
        return errno.ENOSYS, b""

    def _add(self, folder: Node, name: bytes, mode: int) -> int:
        number = next(self._numbers)
        self.nodes[number] = Node(mode)
        folder.names[name.rstrip(b"\0")] = number
        return number

    def _entry(self, number: int) -> bytes:
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self._attributes(number)

    def _attributes(self, number: int) -> bytes:
        node = self.nodes[number]
        size = len(node.data)
        return struct.pack(
            "<6Q3I7I", number, size, -(-size // 512), 0, 0, 0, 0, 0, 0, node.mode, 1, 0, 0, 0, 4096, 0
        )

    def _listing(self, node: Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        out = b""
        for at, (name, number) in enumerate(list(node.names.items())[offset:], start=offset + 1):
            kind = stat.S_IFMT(self.nodes[number].mode) >> 12
            entry = struct.pack("<QQII", number, at, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out


def serve(device: int, system: FileSystem) -> None:
    """Serve requests until the file system is unmounted."""
    while True:
        try:
            request = os.read(device, LARGEST + 4096)
        except OSError:
            return
        _, opcode, unique, number = struct.unpack_from("<IIQQ", request)
        answered = system.answer(opcode, number, request[40:])
        if answered is not None:
            why, reply = answered
            os.write(device, struct.pack("<IiQ", 16 + len(reply), -why, unique) + reply)


def main(folder: str, operation: str, why: str, first: str, *command: str) -> int:
    """Mount the file system, run the command, and print which files are left."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"failing", folder.encode(), b"fuse.failing", 0, options):
        sys.exit(os.strerror(ctypes.get_errno()))
    system = FileSystem(operation, why, int(first))
    threading.Thread(target=serve, args=(device, system), daemon=True).start()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    print(
        "left:", [len(node.data) for node in system.nodes.values() if not stat.S_ISDIR(node.mode)], flush=True
    )
    os._exit(done.returncode)  # does not wait for a hanging request


if __name__ == "__main__":
    main(*sys.argv[1:])
