"""All-reduces through torch.distributed, by Peerway and by the other libraries that PyTorch has, in turn:

python apps/collectives/over_torch.py --ranks 4 --device cuda --out results/torch/all_reduce.jsonl

On GPUs: NCCL and the kernels of symmetric memory, called one by one and in CUDA graphs. On CPUs: gloo. NVLink
multicast is off for all of them, as hosts that several people share forbid it.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import torch
import torch.distributed as dist

import peerway.torch_distributed  # noqa: F401 (registers the backend)

sys.path.append(str(Path(__file__).resolve().parents[1]))

import record_lines

SIZES = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]  # bytes
IN_GRAPH = 20  # calls of a graph
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}

Call = Callable[[], Any]


class Rank:
    """One rank of the measurement."""

    def __init__(self, meeting: str, device: str) -> None:
        rank, size = int(os.environ["PEERWAY_RANK"]), int(os.environ["PEERWAY_SIZE"])
        self.device = device
        if device == "cuda":
            torch.cuda.set_device(rank % torch.cuda.device_count())
        else:
            torch.set_num_threads(1)
        dist.init_process_group("peerway", init_method=f"file://{meeting}", rank=rank, world_size=size)
        everybody = list(range(size))
        self.gloo = dist.new_group(everybody, backend="gloo")
        has_gpus = device == "cuda" and torch.cuda.device_count() >= size
        self.nccl = dist.new_group(everybody, backend="nccl") if has_gpus else None

    def calls(self, count: int) -> Iterator[tuple[str, Call]]:
        """The libraries, and a call of each that sums `count` float32."""
        tensor = torch.zeros(count, device=self.device)
        yield "peerway", lambda: dist.all_reduce(tensor)
        if self.device == "cpu":
            yield "gloo", lambda: dist.all_reduce(tensor, group=self.gloo)
        if self.nccl is not None:
            yield "nccl", lambda: dist.all_reduce(tensor, group=self.nccl)
            yield from self.symmetric(count)

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


def measure(meeting: str, device: str, samples: int, times: int) -> None:
    """What each rank does; rank 0 prints the results."""
    rank = Rank(meeting, device)
    modes = ["eager", "graph"] if device == "cuda" else ["eager"]
    for size in SIZES:
        calls = list(rank.calls(size // 4))
        number = max(samples if size <= 1 << 20 else samples // 10, 10)
        for mode in modes:
            us: dict[str, list[float]] = {name: [] for name, _ in calls}
            for _ in range(times):
                for name, call in calls:
                    us[name] += rank.measured(call, mode, number)
            for name, each in us.items():
                if dist.get_rank() == 0:
                    print(json.dumps(_record(name, size, mode, each)), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def _record(library: str, size: int, mode: str, us: list[float]) -> dict[str, Any]:
    ordered = sorted(us)
    return {
        "what": "all_reduce of float32 through torch.distributed, sum",
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
@click.option("--samples", default=500, help="Samples of each library at a time, up to 1 MiB.")
@click.option("--times", default=3, help="How often the libraries take turns.")
@click.option("--out", type=click.Path(path_type=Path), help="Append the records to this file.")
@click.option("--meeting", hidden=True, help="The file at which the ranks meet; given to ranks.")
def main(ranks: int, device: str, samples: int, times: int, out: Path | None, meeting: str | None) -> None:
    if meeting is not None:
        measure(meeting, device, samples, times)
        return
    options = [f"--device={device}", f"--samples={samples}", f"--times={times}"]
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
