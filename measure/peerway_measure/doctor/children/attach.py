"""Prints, as one line of JSON, whether a process may read the memory of another one of the same user.

It tries process_vm_readv as it is, and again once the other process has allowed it. It also tries
memfd_create.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)
PATTERN = b"peerway"
SPANS = (ctypes.c_void_p, ctypes.c_ulong)


class Span(ctypes.Structure):
    """The system's struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def read_from(libc: Any, process: int, address: int) -> str:
    """Read the pattern from the other process: "ok", or the reason why not."""
    copy = ctypes.create_string_buffer(len(PATTERN))
    local = Span(ctypes.addressof(copy), len(PATTERN))
    remote = Span(address, len(PATTERN))
    got = libc.process_vm_readv(process, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if got == len(PATTERN):
        return "ok" if copy.raw == PATTERN else "the bytes read are wrong"
    return os.strerror(ctypes.get_errno())


def attempt(libc: Any, buffer: Any) -> str:
    """Let a forked process read from this one, which is not its descendant: as ranks do."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        # Clear this process's own copy, so that a pattern read below can only come from the parent.
        ctypes.memset(buffer, 0, len(PATTERN))
        os.write(theirs, read_from(libc, os.getppid(), ctypes.addressof(buffer)).encode())
        os._exit(0)
    os.close(theirs)
    reason = os.read(ours, 200).decode() or "the system call ended the process"
    os.close(ours)
    os.waitpid(child, 0)
    return "" if reason == "ok" else reason


def answer() -> dict[str, Any]:
    """Try both, and memfd_create."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    libc.process_vm_readv.argtypes = [ctypes.c_int, *SPANS, *SPANS, ctypes.c_ulong]
    buffer = ctypes.create_string_buffer(PATTERN, len(PATTERN))
    plain = attempt(libc, buffer)
    libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    allowed = attempt(libc, buffer)
    try:
        os.close(os.memfd_create("peerway-doctor"))
        memfd = True
    except OSError:
        memfd = False
    return {
        "cross_attach": not plain,
        "cross_attach_opt_in": not allowed,
        "cross_attach_error": plain,
        "memfd": memfd,
    }


if __name__ == "__main__":
    json.dump(answer(), sys.stdout)
