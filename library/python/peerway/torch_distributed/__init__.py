"""Peerway as a backend of torch.distributed. Importing this module registers it:

    import peerway.torch_distributed
    torch.distributed.init_process_group("peerway")

Needs PyTorch (the extra `torch`); nothing else of Peerway imports this module.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

try:
    import torch.distributed as dist
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "peerway: peerway.torch_distributed needs PyTorch, which is not installed: pip install "
        "'peerway[torch]'.",
        name=error.name,
    ) from error

from peerway.torch_distributed.group import ProcessGroup

__all__ = ["ProcessGroup", "check"]


def check(group: Any = None) -> None:
    """Raises the error that ended a collective of the group on a GPU, if one did: a rank was lost, or a wait
    lasted longer than the group's time limit.

    Calls of torch.distributed raise such errors by themselves, at the next call. Replays of CUDA graphs make
    no call, so check after them. Without `group` it checks the default group.
    """
    chosen = dist.group.WORLD if group is None else group
    if not isinstance(chosen, ProcessGroup):
        raise TypeError(f"peerway: check: {chosen!r} is not a group of the backend peerway.")
    chosen.check()


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    return ProcessGroup(store, rank, size, timeout)


dist.Backend.register_backend("peerway", _create, devices=["cpu", "cuda"])
