"""The backend peerway on GPUs, in the order of streams and in CUDA graphs. Prints what was wrong.

torch_streams.py MEETING
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.append(str(Path(__file__).resolve().parents[2] / "system" / "programs"))

import torch_ranks

import peerway.torch_distributed

LONG = 1_000_000_000  # cycles of a GPU, more than half a second
COUNT = 10_000


def rank_sum() -> int:
    """The sum of 1 + rank over all ranks."""
    return sum(range(1, dist.get_world_size() + 1))


def mine(count: int = COUNT, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((count,), (1.0 + dist.get_rank()) * scale, dtype=dtype, device="cuda")


def is_sum(tensor: torch.Tensor, scale: float = 1.0) -> bool:
    return torch.equal(tensor, torch.full_like(tensor, rank_sum() * scale))


def waits_in_the_stream() -> bool:
    """Neither the call nor its wait waits on the host for what is before it in the stream."""
    tensor = mine()
    dist.all_reduce(tensor)  # makes the plan
    torch.cuda.synchronize()
    dist.barrier()
    for asynchronous in (False, True):
        tensor.copy_(mine())
        torch.cuda.synchronize()
        torch.cuda._sleep(LONG)
        before = torch.cuda.Event()
        before.record()
        work = dist.all_reduce(tensor, async_op=asynchronous)
        if work is not None:
            work.wait()
        still_asleep = not before.query()
        tensor.mul_(2)
        torch.cuda.synchronize()
        if not (still_asleep and is_sum(tensor, 2)):
            return False
    return True


def keeps_the_order_across_streams() -> bool:
    """Collectives started in several streams, each on what the stream before it computed."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    tensor = mine()
    for turn in range(9):
        stream = streams[turn % 3]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG // 100)
            work = dist.all_reduce(tensor, async_op=turn % 2 == 1)
            if work is not None:
                work.wait()
            tensor.div_(rank_sum())
            tensor.mul_(1 + dist.get_rank())
        torch.cuda.current_stream().wait_stream(stream)
    return torch.allclose(tensor, mine())


def tensors_may_be_freed_at_once() -> bool:
    """PyTorch reuses the memory of tensors that the program dropped while a collective used them."""
    kept = []
    for turn in range(50):
        tensor = mine(100_000, turn + 1.0)
        work = dist.all_reduce(tensor, async_op=True)
        other = torch.full((100_000,), -1.0, device="cuda")  # may lie where an earlier tensor was
        work.wait()
        kept.append((tensor[:10].clone(), turn + 1.0))
        del tensor, other
    torch.cuda.synchronize()
    return all(is_sum(tensor, scale) for tensor, scale in kept)


def captured(step: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """A graph of the step, which runs before as PyTorch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def runs_in_graphs() -> bool:
    """Every replay is a start of each collective, whether the program waits for it at once or later; calls
    outside of graphs may come between.
    """
    size, rank = dist.get_world_size(), dist.get_rank()
    tensor, later = mine(), mine(COUNT, 1.0, torch.bfloat16)
    part = torch.zeros(COUNT, device="cuda")
    whole = torch.zeros(size * COUNT, device="cuda")
    source = torch.zeros(size * COUNT, device="cuda")

    def step() -> None:
        work = dist.all_reduce(later, async_op=True)
        dist.all_reduce(tensor)
        dist.reduce_scatter_tensor(part, source)
        dist.all_gather_into_tensor(whole, part)
        work.wait()

    graphs = [captured(step), captured(step)]
    for turn in range(6):
        tensor.copy_(mine(scale=turn))
        later.copy_(mine(COUNT, 2.0, torch.bfloat16))
        source.fill_(turn * (rank + 1))
        graphs[turn % 2].replay()
        between = mine()
        dist.all_reduce(between)
        results = ((tensor, turn), (later, 2), (whole, turn), (between, 1))
        if not all(is_sum(result, scale) for result, scale in results):
            return False
    peerway.torch_distributed.check()
    return True


def refuses_to_make_a_plan_in_a_capture() -> bool:
    tensor = mine(12_345)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            dist.all_reduce(tensor)
    except RuntimeError as error:
        return "Run the step once before you capture it" in str(error)
    return False


def sends_in_streams() -> bool:
    """Messages wait for what is before them in the stream, and so do those who receive them."""
    size, rank = dist.get_world_size(), dist.get_rank()
    source, target = mine(3_000_000), torch.zeros(3_000_000, device="cuda")
    torch.cuda._sleep(LONG // 10)
    source.mul_(2)
    works = [dist.isend(source, (rank + 1) % size), dist.irecv(target, (rank - 1) % size)]
    for work in works:
        work.wait()
    target.add_(1)
    return torch.equal(target, torch.full_like(target, 2.0 * (1 + (rank - 1) % size) + 1))


CASES = [
    waits_in_the_stream,
    keeps_the_order_across_streams,
    tensors_may_be_freed_at_once,
    runs_in_graphs,
    sends_in_streams,
    refuses_to_make_a_plan_in_a_capture,
]


def main() -> int:
    """Run the cases."""
    torch_ranks.begin(sys.argv[1], "cuda")
    wrong = []
    for case in CASES:
        try:
            right = case()
        except Exception:
            traceback.print_exc()
            right = False
        if not right:
            wrong.append(case.__name__)
    print(json.dumps(wrong), flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
