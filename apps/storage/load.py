"""How long a campaign takes on clusters that no machine holds, and how it loads their file servers: simulated
with SimGrid (load.cpp), with the order of measurements of the campaign itself. Nothing is measured here.

A measurement starts (the job and the interpreter: from half to one and a half of `--start-s`), writes a new
file to the disk of one server, reads it again from that server's memory, and then works on its own node (the
re-read from the page cache, the comparison of the data). Files are placed on the servers in turn. A stream
of a node is as fast as `--stream` alone; all other limits are shared.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from peerway_common.cli.numbers import Number, Whole
from peerway_measure.campaign import plan_file

HERE = Path(__file__).resolve().parent
RATE = Number(0, 1e15, min_open=True)
SECONDS = Number(0)


class CannotSimulate(Exception):
    """The simulation cannot run; the message says what is missing."""


@dataclass(frozen=True)
class Cluster:
    """The cluster to simulate. Rates are in bytes per second: a node's stream, a server's link, its disk."""

    nodes: int = 46
    at_once: int = 4
    repeats: int = 25
    gigabytes: float = 1
    servers: int = 4
    stream: float = 1.2e9
    server: float = 12.5e9
    disk: float = 3e9
    start_s: float = 2
    local_s: float = 0.6


def build(folder: Path) -> Path:
    """Compile the simulator in a folder; returns the program. Raises CannotSimulate."""
    if not Path("/usr/include/simgrid/s4u.hpp").exists():
        raise CannotSimulate("SimGrid is missing: apt-get install libsimgrid-dev")
    program = folder / "load"
    compiler = os.environ.get("CXX", "c++")
    command = [
        compiler,
        "-std=c++20",
        "-O2",
        "-Wall",
        "-Wextra",
        str(HERE / "load.cpp"),
        "-lsimgrid",
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotSimulate(f"{HERE / 'load.cpp'} cannot be compiled: {done.stderr[-2000:]}")
    return program


def order(cluster: Cluster) -> list[int]:
    """The nodes in the order in which `peerway campaign` measures them."""
    text = (
        f'repeats = {cluster.repeats}\nseed = 1\n[nodes]\nall = ["n[1-{cluster.nodes}]"]\n'
        '[[tests]]\nname = "t"\ncommand = "true"\n'
    )
    return [int(task.node[1:]) - 1 for task in plan_file.parse(text).tasks()]


def simulate(program: Path, cluster: Cluster) -> dict[str, Any]:
    """Simulate a campaign: its hours, the load of the busiest server's disk, and the slowdown of a
    measurement.

    The slowdown is caused by other measurements of the same campaign, so it should be zero.
    """
    c = cluster
    words = {
        "nodes": c.nodes, "servers": c.servers, "at-once": c.at_once, "bytes": c.gigabytes * 1e9,
        "node": c.stream, "server": c.server, "disk": c.disk, "start-s": c.start_s, "local-s": c.local_s,
    }  # fmt: skip
    arguments = [str(word) for pair in words.items() for word in pair]
    text = "\n".join(map(str, order(cluster)))
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=True)
    simulated = json.loads(done.stdout)
    alone = min(c.stream, c.server, c.disk)
    return {
        "measurements": simulated["measurements"],
        "hours": round(simulated["seconds"] / 3600, 4),
        "written_TB": round(simulated["measurements"] * c.gigabytes / 1e3, 3),
        "disk_percent": round(100 * simulated["disk_share"], 1),
        "write_slower_percent": round(100 * (1 - simulated["write_Bps"] / alone), 1),
        "least_write_slower_percent": round(100 * (1 - simulated["least_write_Bps"] / alone), 1),
        "read_slower_percent": round(100 * (1 - simulated["read_Bps"] / min(c.stream, c.server)), 1),
    }


@click.command()
@click.option("--nodes", type=Whole(1, 100_000), default=46, show_default=True)
@click.option(
    "--at-once",
    type=Whole(1, 100_000),
    default=4,
    show_default=True,
    help="Nodes at the same time, as in campaign.toml.",
)
@click.option("--repeats", type=Whole(1, 10_000), default=25, show_default=True)
@click.option(
    "--gigabytes", type=Number(0, min_open=True), default=1.0, show_default=True, help="Of the file."
)
@click.option("--servers", type=Whole(1, 100_000), default=4, show_default=True)
@click.option("--stream", type=RATE, default=1.2e9, show_default=True, help="B/s of one stream of a node.")
@click.option("--server", type=RATE, default=12.5e9, show_default=True, help="B/s of a server's link.")
@click.option("--disk", type=RATE, default=3e9, show_default=True, help="B/s that a server writes.")
@click.option(
    "--start-s",
    type=SECONDS,
    default=2.0,
    show_default=True,
    help="Seconds from one measurement to the next.",
)
@click.option(
    "--local-s", type=SECONDS, default=0.6, show_default=True, help="Seconds that only its own node is busy."
)
def main(**options: Any) -> None:
    """Simulate one campaign, and print its record."""
    with tempfile.TemporaryDirectory() as name:
        try:
            simulated = simulate(build(Path(name)), Cluster(**options))
        except CannotSimulate as error:
            raise click.ClickException(str(error)) from None
    program = shlex.join(["python", "apps/storage/load.py", *sys.argv[1:]])
    print(json.dumps({"test": "simulated_campaign", **options, **simulated, "command": program}))


if __name__ == "__main__":
    main()
