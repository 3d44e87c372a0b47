"""Sums over the backend peerway until a rank is gone; prints what each other rank was told.

torch_lost.py MEETING sync|async|recv         says "running", and waits at the end for a line of input
torch_lost.py MEETING sync|async cuda         rank 1 ends itself
"""

from __future__ import annotations

import json
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch_ranks


def until_lost(how: str, device: str) -> list[str]:
    tensor = torch.ones(1000, device=device)
    try:
        for turn in range(sys.maxsize):
            if turn == 50 and device == "cuda" and dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if turn == 50 and device == "cpu":
                print(json.dumps("running"), flush=True)
            if turn == 50 and how == "recv" and dist.get_rank() != 1:
                dist.recv(tensor, 1)  # which never sends
            work = dist.all_reduce(tensor, async_op=how == "async")
            if work is not None:
                work.wait()
            if device == "cuda" and turn % 50 == 49:
                torch.cuda.synchronize()  # or the host runs far ahead
            tensor.fill_(1)
    except RuntimeError as error:
        return [type(error).__name__, str(error)]
    return []


def main() -> int:
    """Print the error, and end the group."""
    meeting, how, device, *_ = [*sys.argv[1:], "cpu"]
    torch_ranks.begin(meeting, device)
    print(json.dumps(until_lost(how, device)), flush=True)
    if device == "cpu":
        sys.stdin.readline()  # until the other survivors have the error, too
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
