"""What waiting for a graph on a stream costs the host: the CPU time of all threads of the process, by how
long the graph takes and by who waits. A line of JSON for each. Needs one GPU and CuPy 14.

    python apps/limits/graph_wait.py > graph_wait.jsonl
"""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import cupy  # type: ignore[import-not-found, unused-ignore]

import peerway

LENGTHS_US = (50, 100, 200, 500, 1000, 5000)
KERNELS = 10  # per graph
SPENDS_S = 0.5  # per measurement
SPIN = r"""
extern "C" __global__ void spin(unsigned long long ns) {
  unsigned long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - began < ns);
}
"""


def graph_of(stream: Any, length_us: int) -> Any:
    """Capture a graph that keeps the GPU busy for about this long."""
    spin = cupy.RawKernel(SPIN, "spin")
    with stream:
        spin((1,), (1,), (1,))  # compile it before the capture
        stream.begin_capture()
        for _ in range(KERNELS):
            spin((1,), (1,), (length_us * 1000 // KERNELS,))
        return stream.end_capture()


def measured(graph: Any, stream: Any, wait: Callable[[], object]) -> dict[str, float]:
    """Launch and wait for 0.5 s; returns the time and the CPU time of one launch with its wait."""
    took, launched = [], []
    used, began = time.process_time(), time.perf_counter()
    while time.perf_counter() - began < SPENDS_S:
        start, cpu = time.perf_counter(), time.thread_time()
        graph.launch(stream)
        launched.append(time.thread_time() - cpu)
        wait()
        took.append(time.perf_counter() - start)
    wall, used = time.perf_counter() - began, time.process_time() - used
    return {
        "p50_us": round(statistics.median(took) * 1e6, 1),
        "launch_cpu_us": round(statistics.median(launched) * 1e6, 1),
        "cpu_us": round(used / len(took) * 1e6, 1),
        "cpu_percent": round(100 * used / wall, 1),
        "waits": len(took),
    }


def main() -> None:
    """Measure each length with each kind of wait, in turn."""
    print(json.dumps({"record": "env", "command": shlex.join(sys.argv), "gpu": gpu_name()}), flush=True)
    with peerway.Context() as ctx:
        mine = ctx.stream("cuda")
        stream = cupy.cuda.Stream.from_external(mine)
        event = cupy.cuda.Event(block=True, disable_timing=True)

        def by_event() -> None:
            event.record(stream)
            event.synchronize()

        for length_us in LENGTHS_US:
            graph = graph_of(stream, length_us)
            for way in ("peerway, blocking", "peerway, busy-poll", "cudaEventBlockingSync"):
                if way.startswith("peerway"):
                    ctx.wait_policy = way.removeprefix("peerway, ")
                wait = by_event if way.startswith("cuda") else mine.wait
                times = measured(graph, stream, wait)
                print(json.dumps({"record": "wait", "way": way, "graph_us": length_us, **times}), flush=True)


def gpu_name() -> str:
    """The driver's name of the GPU."""
    name: bytes = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return name.decode()


if __name__ == "__main__":
    main()
