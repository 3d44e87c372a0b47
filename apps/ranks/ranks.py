"""What a rank costs: many ranks on one host, each with a context, a plan between neighbours and a 2-D halo.

    python apps/ranks/ranks.py --ranks 2,4,8,16,32,64,128,256 --out results/scale-ranks/partners.jsonl

One process imports Peerway and forks itself for each rank, so that what is measured is Peerway's and not the
interpreter's start. All ranks start at the same moment. A record has the median and the longest of the ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shlex
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy

import peerway

LOCAL = 64  # cells of a rank's part per dimension
Numbers = dict[str, float]


def grid_of(ranks: int) -> tuple[int, int]:
    """The most square grid for this number of ranks."""
    rows = max(r for r in range(1, int(ranks**0.5) + 1) if ranks % r == 0)
    return rows, ranks // rows


def memory() -> Numbers:
    """KiB of this process: proportional share, resident memory, and shared memory."""
    fields = {}
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        fields[name] = float(rest.split()[0])
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "pss_kib": fields["Pss"],
        "private_kib": fields["Private_Clean"] + fields["Private_Dirty"],
        "rss_kib": fields["Rss"],
        "shared_memory_kib": float(status["RssShmem"].split()[0]),
        "descriptors": float(len(list(Path("/proc/self/fd").iterdir()))),
        "sockets": float(sum("socket:" in link for link in links())),
        "threads": float(status["Threads"]),
    }


def links() -> list[str]:
    """The targets of this process's file descriptors."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them
            names.append(str(entry.readlink()))
    return names


def plan_between(context: peerway.Context, grid: tuple[int, int]) -> None:
    """Prepare, start and finish a plan that exchanges a row with each of the four neighbours."""
    rows, columns = grid
    row, column = divmod(context.rank, columns)
    edges = context.allocate("host", 8 * LOCAL * 8)
    builder = context.plan("host")
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
    for tag, (down, right) in enumerate(steps):
        to = (row + down) % rows * columns + (column + right) % columns
        source = (row - down) % rows * columns + (column - right) % columns
        builder.send(to, tag, edges[tag * LOCAL * 8 : (tag + 1) * LOCAL * 8])
        builder.receive(source, tag, edges[(4 + tag) * LOCAL * 8 : (5 + tag) * LOCAL * 8])
    plan = builder.prepare()
    plan.start()
    plan.finish()


def rank_main(ranks: int, barrier: int) -> dict[str, float]:
    """Measure one rank. `barrier` is a pipe that closes when all ranks may start."""
    before = memory()
    os.read(barrier, 1)
    began, cpu = time.monotonic_ns(), time.process_time_ns()
    context = peerway.Context()
    created, cpu_created = time.monotonic_ns(), time.process_time_ns()
    with_context = memory()
    cells = numpy.zeros((LOCAL + 2, LOCAL + 2))
    region = context.register(cells)
    context.team.barrier()
    planning, cpu_planning = time.monotonic_ns(), time.process_time_ns()
    plan_between(context, grid_of(ranks))
    planned, cpu_planned = time.monotonic_ns(), time.process_time_ns()
    with_plan = memory()
    context.team.barrier()
    ready, cpu_ready = time.monotonic_ns(), time.process_time_ns()
    halo = context.halo(cells, grid=grid_of(ranks), shadow=1, periodic=True)
    prepared, cpu_prepared = time.monotonic_ns(), time.process_time_ns()
    halo.start()
    halo.finish()
    context.team.barrier()
    after = memory()
    context.team.barrier()
    del halo, region
    context.close()
    numbers = {
        "context_ms": (created - began) / 1e6,
        "context_cpu_ms": (cpu_created - cpu) / 1e6,
        "plan_ms": (planned - planning) / 1e6,
        "plan_cpu_ms": (cpu_planned - cpu_planning) / 1e6,
        "prepare_ms": (prepared - ready) / 1e6,
        "prepare_cpu_ms": (cpu_prepared - cpu_ready) / 1e6,
    }
    for name, value in after.items():
        numbers[name] = value
        numbers[f"added_{name}"] = value - before[name]
        numbers[f"context_added_{name}"] = with_context[name] - before[name]
        numbers[f"plan_added_{name}"] = with_plan[name] - before[name]
    return numbers


def child(rank: int, ranks: int, job: dict[str, str], barrier: int, out: int) -> None:
    os.environ.update(job, PEERWAY_RANK=str(rank), PEERWAY_LOCAL_RANK=str(rank))
    try:
        answer: dict[str, Any] = rank_main(ranks, barrier)
    except BaseException:
        answer = {"error": traceback.format_exc()}
    with os.fdopen(out, "w") as stream:
        json.dump(answer, stream)


def measure(ranks: int) -> list[Numbers]:
    """Start the ranks; returns the numbers of each."""
    job = {
        "PEERWAY_SIZE": str(ranks),
        "PEERWAY_LOCAL_SIZE": str(ranks),
        "PEERWAY_SECRET": secrets.token_hex(16),
        "PEERWAY_RENDEZVOUS": f"unix:@peerway-ranks-{secrets.token_hex(8)}",
        "PEERWAY_TIMEOUT": "120",
        "PEERWAY_WAIT": "blocking",
    }
    wait, go = os.pipe()
    pipes: list[int] = []
    children: list[int] = []
    for rank in range(ranks):
        read, write = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(go)
            os.close(read)
            for other in pipes:
                os.close(other)
            child(rank, ranks, job, wait, write)
            sys.stdout.flush()
            os._exit(0)
        os.close(write)
        pipes.append(read)
        children.append(process)
    os.close(wait)
    os.close(go)
    answers = []
    for read in pipes:
        with os.fdopen(read) as stream:
            answers.append(json.loads(stream.read()))
    for process in children:
        os.waitpid(process, 0)
    for rank, numbers in enumerate(answers):
        if "error" in numbers:
            raise SystemExit(f"rank {rank} of {ranks}: {numbers['error']}")
    return answers


def record(ranks: int, answers: list[Numbers]) -> dict[str, Any]:
    summary = {
        name: {
            "median": round(statistics.median(each[name] for each in answers), 3),
            "max": round(max(each[name] for each in answers), 3),
            "rank_0": round(answers[0][name], 3),
        }
        for name in answers[0]
    }
    return {
        "test": "ranks",
        "command": shlex.join(["python", *sys.argv]),
        "peerway": peerway.__version__,
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "ranks": ranks,
        "grid": grid_of(ranks),
        "local": [LOCAL, LOCAL],
        "of_ranks": summary,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--ranks", default="2,4,8,16,32,64,128,256", help="how many, one after the other")
    options.add_argument("--repeat", type=int, default=1, help="how often each")
    options.add_argument("--out", type=Path, required=True, help="JSON lines, replaced")
    given = options.parse_args()
    with given.out.open("w") as stream:
        for _ in range(given.repeat):
            for ranks in map(int, given.ranks.split(",")):
                line = record(ranks, measure(ranks))
                stream.write(json.dumps(line) + "\n")
                stream.flush()
                print(ranks, {n: v["median"] for n, v in line["of_ranks"].items()}, flush=True)


if __name__ == "__main__":
    main()
