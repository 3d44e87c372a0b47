"""The exceptions of Peerway: one class for each status of the C interface. Messages say what was asked, what
was found and what to do.
"""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """Anything Peerway refuses or cannot do. `status` is the status's name in the C interface."""

    status: ClassVar[str] = "internal"


class Timeout(Error, TimeoutError):
    """The time given has passed."""

    status = "timeout"


class PeerLost(Error, ConnectionError):
    """The rank at the other end died or left."""

    status = "peer_lost"


class InvalidArgument(Error, ValueError):
    """A value that no call may have."""

    status = "invalid_argument"


class OutOfRange(Error, IndexError):
    """Past the end of a region, or a rank outside the team."""

    status = "out_of_range"


class BadKey(Error, ValueError):
    """The bytes are not a key of this version."""

    status = "bad_key"


class StaleKey(Error):
    """The region behind the key was closed."""

    status = "stale_key"


class ForeignKey(Error):
    """The key belongs to another job."""

    status = "foreign_key"


class Unsupported(Error):
    """No path can do this between these two memories."""

    status = "unsupported"


class Unavailable(Error):
    """A library, driver or device that was asked for is not here."""

    status = "unavailable"


class NoMemory(Error, MemoryError):
    """There is not enough memory."""

    status = "no_memory"


class Denied(Error, PermissionError):
    """A wrong secret, or the system refuses."""

    status = "denied"


class SystemFailure(Error, OSError):
    """A system call failed; the message has its number."""

    status = "system"


class DeviceFailure(Error):
    """The device's driver reported an error."""

    status = "device"


class BadTable(Error, ValueError):
    """A route table or rules file that cannot be used."""

    status = "bad_table"


class BadConfig(Error, ValueError):
    """A configuration value that cannot be used."""

    status = "bad_config"


class Closed(Error):
    """The object, its context or its team was closed."""

    status = "closed"


class Internal(Error):
    """A defect of Peerway; please report it."""

    status = "internal"


_BY_STATUS: dict[str, type[Error]] = {
    kind.status: kind
    for kind in (
        Timeout, PeerLost, InvalidArgument, OutOfRange, BadKey, StaleKey, ForeignKey, Unsupported,
        Unavailable, NoMemory, Denied, SystemFailure, DeviceFailure, BadTable, BadConfig, Closed, Internal, )
        }  # fmt: skip


def by_status(status: str) -> type[Error]:
    """The exception class of a status's name; Error itself for one that this version does not know."""
    return _BY_STATUS.get(status, Error)
