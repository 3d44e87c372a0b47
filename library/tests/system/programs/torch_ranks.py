"""What the tests of the PyTorch backend on CPUs and on GPUs share: how ranks meet, and a model to train."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import peerway.torch_distributed  # noqa: F401 (registers the backend)

LIMIT = timedelta(seconds=600)


def begin(meeting: str, device: str = "cpu", backend: str = "peerway") -> None:
    """Make the default group of the ranks that PEERWAY_RANK and PEERWAY_SIZE number. They meet at a file, or
    at "tcp://host:port". On GPUs each rank takes its own, as long as there are enough.
    """
    rank, size = int(os.environ["PEERWAY_RANK"]), int(os.environ["PEERWAY_SIZE"])
    method = meeting if "://" in meeting else f"file://{meeting}"
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(backend, init_method=method, rank=rank, world_size=size, timeout=LIMIT)


def model_of(width: int, device: str) -> nn.Module:
    """A small model, the same in all ranks."""
    torch.manual_seed(5)
    layers = [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.LayerNorm(width)]
    return nn.Sequential(*layers, nn.Linear(width, 1)).to(device)


def losses_of(model: nn.Module, width: int, device: str, steps: int, group: Any = None) -> list[float]:
    """The losses of training steps, each the mean over the ranks of the group. Each rank has its own data."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(dist.get_rank(group))
    losses = []
    for _ in range(steps):
        batch = torch.randn(16, width, generator=generator).to(device)
        loss = (model(batch) - batch.sum(1, keepdim=True) / width**0.5).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=group)
        losses.append(mean.item())
    return losses
