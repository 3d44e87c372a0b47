"""Trains a small model over the backend peerway and over another one, and prints the losses of both:

torch_training.py MEETING ddp|fsdp DEVICE OTHER_BACKEND OTHER_DEVICE
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch.distributed as dist
import torch_ranks
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH = 64
STEPS = 6


def wrapped(kind: str, model: Any, group: Any, device: str) -> nn.Module:
    """The model, distributed over the group."""
    if kind == "ddp":
        return DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.05)
    mesh = DeviceMesh.from_group(group, device)
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def main() -> int:
    """Print the losses over both backends."""
    meeting, kind, device, other, other_device = sys.argv[1:]
    torch_ranks.begin(meeting, device)
    theirs = dist.new_group(list(range(dist.get_world_size())), backend=other)
    losses = []
    for group, place in ((dist.group.WORLD, device), (theirs, other_device)):
        model = wrapped(kind, torch_ranks.model_of(WIDTH, place), group, place)
        losses.append(torch_ranks.losses_of(model, WIDTH, place, STEPS, group))
    print(json.dumps(losses), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
