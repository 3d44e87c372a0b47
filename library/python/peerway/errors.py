"""The exceptions of Peerway: one class for each status of the C interface. Messages state what was asked,
what was found and what to do.
"""

from __future__ import annotations

from typing import ClassVar

_BY_STATUS: dict[str, type[Error]] = {}


class Error(Exception):
    """The base of all errors. `status` is the name of the status in the C interface."""

    status: ClassVar[str] = "internal"

    def __init_subclass__(cls, status: str) -> None:
        cls.status = status
        _BY_STATUS[status] = cls


class Timeout(Error, TimeoutError, status="timeout"):
    """The timeout has passed."""


class PeerLost(Error, ConnectionError, status="peer_lost"):
    """The rank at the other end died or left."""


class InvalidArgument(Error, ValueError, status="invalid_argument"):
    """The argument is never valid, or not valid at this point."""


class OutOfRange(Error, IndexError, status="out_of_range"):
    """The range goes past the end of a region, or the rank is outside the team."""


class BadKey(Error, ValueError, status="bad_key"):
    """The bytes are not a key, or a key of another version."""


class StaleKey(Error, status="stale_key"):
    """The region behind the key was closed."""


class ForeignKey(Error, status="foreign_key"):
    """The key belongs to another job."""


class Unsupported(Error, status="unsupported"):
    """No path can do this between these two memories."""


class Unavailable(Error, status="unavailable"):
    """A library, driver or device is missing on this machine."""


class NoMemory(Error, MemoryError, status="no_memory"):
    """There is not enough memory."""


class Denied(Error, PermissionError, status="denied"):
    """The secret is wrong, or the operating system refused."""


class SystemFailure(Error, OSError, status="system"):
    """A system call failed; the message has errno."""


class DeviceFailure(Error, status="device"):
    """The device's driver reported an error."""


class BadTable(Error, ValueError, status="bad_table"):
    """The route table or rules file cannot be used."""


class BadConfig(Error, ValueError, status="bad_config"):
    """The value of a setting cannot be used."""


class Closed(Error, status="closed"):
    """The object, its context or its team was closed."""


class Interrupted(Error, status="interrupted"):
    """A rank of the team was interrupted in a collective. The interrupted rank itself raises
    KeyboardInterrupt, or what its signal handler raised.
    """


class Internal(Error, status="internal"):
    """A defect of Peerway; please report it."""


def by_status(status: str) -> type[Error]:
    """The exception class for the name of a status; Error for a status that this version does not know."""
    return _BY_STATUS.get(status, Error)
