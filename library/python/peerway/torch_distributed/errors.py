"""Errors of Peerway as PyTorch's, with what was to be done and what the user can do."""

from __future__ import annotations

from torch.distributed import DistBackendError

from peerway.errors import Closed, Error, PeerLost, Timeout

_REMEDIES = (
    (
        PeerLost,
        "Call torch.distributed.destroy_process_group(), and begin again with the other ranks, as torchrun "
        "does.",
    ),
    (
        Timeout,
        "Either a rank does not make this call, or it is late: then give init_process_group or new_group a "
        "longer `timeout`.",
    ),
    (Closed, "The process group was destroyed; make another."),
)


def failure_of(title: str, error: Error) -> Exception:
    """The exception for an error in the operation called `title`."""
    text = str(error).removeprefix("peerway: ").rstrip(". ")
    remedy = next((remedy for kind, remedy in _REMEDIES if isinstance(error, kind)), "")
    failure: Exception = DistBackendError(f"peerway: {title}: {text}. {remedy}".rstrip())
    failure.__cause__ = error
    return failure
