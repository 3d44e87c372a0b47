"""Collectives on tensors, by Peerway and by the other libraries that PyTorch has, in turn:

python apps/collectives/over_torch.py --ranks 4 --device cuda --out results/torch/all_reduce.jsonl

Peerway runs twice: through torch.distributed, and as plans over the same tensors. The other libraries are
NCCL and the kernels of symmetric memory on GPUs, and gloo on CPUs. On GPUs all are called one by one and in
CUDA graphs. NVLink multicast is off for all of them, as hosts that several people share forbid it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import torch
import torch.distributed as dist

import peerway
import peerway.torch_distributed  # registers the backend

sys.path.append(str(Path(__file__).resolve().parents[1]))

import record_lines

OPERATIONS = ["all_reduce", "all_gather", "all_to_all"]
SIZES = [8, *(4**power << 10 for power in range(1, 10))]  # bytes: 4 KiB to 256 MiB
IN_GRAPH = 20  # calls of a graph
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}

Call = Callable[[], Any]


class Rank:
    """One rank of the measurement."""

    def __init__(self, meeting: str, device: str, ctx: peerway.Context) -> None:
        self.device, self.ctx = device, ctx
        if device == "cuda":
            torch.cuda.set_device(ctx.rank % torch.cuda.device_count())
        else:
            torch.set_num_threads(1)
        dist.init_process_group(
            "peerway", init_method=f"file://{meeting}", rank=ctx.rank, world_size=ctx.size
        )
        everybody = list(range(ctx.size))
        self.gloo = dist.new_group(everybody, backend="gloo")
        has_gpus = device == "cuda" and torch.cuda.device_count() >= ctx.size
        self.nccl = dist.new_group(everybody, backend="nccl") if has_gpus else None

    def calls(self, operation: str, count: int) -> Iterator[tuple[str, Call]]:
        """The libraries, and a call of each with a source of `count` float32. In an all-to-all the source has
        the parts of all ranks, so `count` must be a multiple of their number.
        """
        source = torch.zeros(count, device=self.device)
        results = {"all_reduce": 0, "all_gather": count * self.ctx.size, "all_to_all": count}
        result = torch.zeros(results[operation], device=self.device)
        yield "peerway", partial(_call, operation, result, source, None)
        yield "peerway plan", self.plan(operation, result, source)
        if self.device == "cpu":
            yield "gloo", partial(_call, operation, result, source, self.gloo)
        if self.nccl is not None:
            yield "nccl", partial(_call, operation, result, source, self.nccl)
            if operation == "all_reduce":
                yield from self.symmetric(count)

    def plan(self, operation: str, result: torch.Tensor, source: torch.Tensor) -> Call:
        """A run of a plan over the tensors, in the current stream."""
        if operation == "all_reduce":
            plan = self.ctx.all_reduce(source)
        elif operation == "all_gather":
            plan = self.ctx.all_gather(result, source)
        else:
            plan = self.ctx.all_to_all(result, source)
        if self.device == "cpu":
            return plan.run
        return lambda: plan.run(torch.cuda.current_stream())

    def symmetric(self, count: int) -> Iterator[tuple[str, Call]]:
        """The kernels of symmetric memory."""
        from torch.distributed import _symmetric_memory

        assert self.nccl is not None
        name = self.nccl.group_name
        shared = _symmetric_memory.empty(count, dtype=torch.float32, device=torch.device("cuda"))
        _symmetric_memory.rendezvous(shared, name)
        shared.zero_()
        operations = torch.ops.symm_mem
        yield "symm_mem one-shot", lambda: operations.one_shot_all_reduce(shared, "sum", name)
        if count >= 1024:
            yield "symm_mem two-shot", lambda: operations.two_shot_all_reduce_(shared, "sum", name)

    def samples(self, call: Call, mode: str, number: int) -> list[float]:
        """Microseconds of each of `number` calls; in graphs, the mean of a graph's calls."""
        if self.device == "cpu":
            return [_timed(call) for _ in range(number)]
        if mode == "graph":
            graph = _captured(call)
            return [us / IN_GRAPH for us in self.on_gpu(graph.replay, number)]
        return self.on_gpu(call, number)

    def on_gpu(self, call: Call, number: int) -> list[float]:
        """Times between events in the stream."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(number + 1)]
        for event in events[:-1]:
            event.record()
            call()
        events[-1].record()
        torch.cuda.synchronize()
        return [1e3 * before.elapsed_time(after) for before, after in pairwise(events)]

    def measured(self, call: Call, mode: str, number: int) -> list[float]:
        """The samples, each that of the slowest rank, after a tenth as many that do not count."""
        self.samples(call, mode, max(number // 10, 3))
        dist.barrier(self.gloo)
        slowest = torch.tensor(self.samples(call, mode, number), dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self.gloo)
        return [float(us) for us in slowest]


def _call(operation: str, result: torch.Tensor, source: torch.Tensor, group: Any) -> None:
    """A collective of torch.distributed. An all-reduce is in place, in `source`."""
    if operation == "all_reduce":
        dist.all_reduce(source, group=group)
    elif operation == "all_gather":
        dist.all_gather_into_tensor(result, source, group=group)
    else:
        dist.all_to_all_single(result, source, group=group)


def _timed(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


def _captured(call: Call) -> torch.cuda.CUDAGraph:
    """A graph of several calls."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_GRAPH):
            call()
    return graph


def measure(meeting: str, operation: str, device: str, samples: int, times: int) -> None:
    """What each rank does; rank 0 prints the results."""
    modes = ["eager", "graph"] if device == "cuda" else ["eager"]
    with peerway.Context() as ctx:
        rank = Rank(meeting, device, ctx)
        for least in SIZES:
            parts = ctx.size if operation == "all_to_all" else 1
            count = -(-least // (4 * parts)) * parts
            size, calls = 4 * count, list(rank.calls(operation, count))
            number = max(samples if size <= 1 << 20 else samples // 10, 10)
            for mode in modes:
                us: dict[str, list[float]] = {name: [] for name, _ in calls}
                for _ in range(times):
                    for name, call in calls:
                        us[name] += rank.measured(call, mode, number)
                for name, each in us.items():
                    if ctx.rank == 0:
                        print(json.dumps(_record(operation, name, size, mode, each)), flush=True)
        dist.barrier()
        dist.destroy_process_group()


def _record(operation: str, library: str, size: int, mode: str, us: list[float]) -> dict[str, Any]:
    ordered = sorted(us)
    return {
        "what": f"{operation} of float32" + (", sum" if operation == "all_reduce" else ""),
        "library": library,
        "mode": mode,
        "bytes": size,
        "p50_us": round(statistics.median(ordered), 3),
        "p99_us": round(ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)], 3),
        "min_us": round(ordered[0], 3),
        "samples": len(ordered),
        "ranks": dist.get_world_size(),
        "torch": torch.__version__,
    }


@click.command(help=__doc__)
@click.option("--ranks", default=2, help="Number of ranks.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Where the tensors are.")
@click.option("--operation", type=click.Choice(OPERATIONS), default="all_reduce", help="The collective.")
@click.option("--samples", default=500, help="Samples of each library at a time, up to 1 MiB.")
@click.option("--times", default=3, help="How often the libraries take turns.")
@click.option("--out", type=click.Path(path_type=Path), help="Append the records to this file.")
@click.option("--meeting", hidden=True, help="The file at which the ranks meet; given to ranks.")
def main(
    ranks: int, device: str, operation: str, samples: int, times: int, out: Path | None, meeting: str | None
) -> None:
    if meeting is not None:
        measure(meeting, operation, device, samples, times)
        return
    options = [f"--device={device}", f"--operation={operation}", f"--samples={samples}", f"--times={times}"]
    with tempfile.TemporaryDirectory() as folder:
        launcher = [sys.executable, "-m", "peerway", "run", "-n", str(ranks), "--"]
        command = [*launcher, sys.executable, __file__, *options]
        done = subprocess.run(
            [*command, f"--meeting={folder}/meeting"],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, **WITHOUT_MULTICAST},
        )
    if done.returncode:
        raise click.ClickException(f"a rank failed ({done.returncode})")
    words = " ".join(["python apps/collectives/over_torch.py", f"--ranks={ranks}", *options])
    for line in done.stdout.splitlines():
        record = json.loads(line)
        click.echo(
            f"{record['bytes']:>9} B  {record['mode']:5}  {record['library']:17}  "
            f"p50 {record['p50_us']:9.2f} us, p99 {record['p99_us']:9.2f} us"
        )
        record |= {"date": record_lines.now(), "command": words}
        record |= {"device": torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} CPUs"}
        record_lines.append(out, record)


if __name__ == "__main__":
    main()
