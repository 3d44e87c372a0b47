"""Drops root's privileges, except the right to read /proc of users' processes.

CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH allow reading /proc/PID/io and environ. All other capabilities are
dropped, for this process and for its children, so that even as root it cannot change files of others.
"""

from __future__ import annotations

import ctypes
import os

_KEPT = (2, 19)  # CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_VERSION_3 = 0x20080522


class _Head(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop() -> str:
    """Drop the capabilities if this process is root. Returns "", or why it failed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return f"new privileges cannot be renounced: {os.strerror(ctypes.get_errno())}"
    if os.geteuid() != 0:
        return ""
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) != 1 or capability in _KEPT:
            continue
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            return f"capability {capability} cannot be dropped: {os.strerror(ctypes.get_errno())}"
    kept = sum(1 << capability for capability in _KEPT)
    sets = (_Sets * 2)(_Sets(kept, kept, 0), _Sets(0, 0, 0))
    if libc.capset(ctypes.byref(_Head(_VERSION_3, 0)), sets) != 0:
        return f"capabilities cannot be set: {os.strerror(ctypes.get_errno())}"
    return ""
