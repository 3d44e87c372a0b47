"""The ranks register GPU memory anew in each round, and rank 1 puts into that of rank 0. Prints what the last
rounds cost in GPU memory, descriptors and memory of the process.

Arguments: memory (cuda: of the region itself; torch: one tensor, registered again), rounds.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

import torch

import peerway

memory, rounds = sys.argv[1], int(sys.argv[2])
team = peerway.Team.from_launcher()
context = peerway.Context(team)
tensor = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda") if memory == "torch" else None
source = context.allocate("cuda", 8)


def used() -> dict[str, int]:
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {
        "gpu": total - free,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def one_round() -> None:
    region: Any = context.register(tensor) if tensor is not None else context.allocate("cuda", 1 << 20)
    keys = team.all_gather(region.key())
    if team.rank == 1:
        remote = context.import_key(keys[0])
        context.put(remote[:8], source)
        context.flush()
        remote.close()
    team.barrier()
    region.close()


before: dict[str, int] = {}
for number in range(rounds):
    one_round()
    if number == rounds // 4:  # caches are full by then
        before = used()
after = used()
print(json.dumps({"rank": team.rank, **{name: after[name] - before[name] for name in after}}), flush=True)
