"""What lost datagrams cost the torus NIC: a ring of ranks in network namespaces, with losses and without.

    sudo .venv/bin/python apps/loss/loss.py --out out/loss.jsonl

Needs root, for it makes the namespaces and the bridge between them, and a build (`make build`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from peerway import _core
from peerway_common.cli.numbers import Number
from peerway_measure import records
from peerway_measure.bench import machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "apps" / "mpi"))

from hosts import NoHosts, address, network  # noqa: E402

RANKS = 4
COUNTED = ("datagrams", "retransmitted", "dropped", "repeated")


class CannotMeasure(click.ClickException):
    """Something is missing, or the program failed; the message says which."""


def build() -> Path:
    """Compile the ring program if it changed; returns its path."""
    source, program = HERE / "ring.cpp", ROOT / "build" / "loss" / "ring"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-Wall", "-Wextra"]
        _must([*compiler, f"-I{ROOT / 'library' / 'include'}", str(source), "-ldl", "-o", str(program)])
    return program


def torus(drop: float) -> dict[str, object]:
    """A torus file with a ring of one node per namespace."""
    nodes = {str(i): address(i) for i in range(RANKS)}
    return {"extents": [RANKS], "contexts": 2, "nodes": nodes, "faults": {"drop": drop}}


def measure(
    spaces: Sequence[str],
    drops: Sequence[float],
    *,
    size: int,
    in_flight: int,
    turns: int,
    ms: int,
    command: str,
) -> list[records.Record]:
    """A record for each probability of loss, measured in turn, so that all see the same state of the
    machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        options, counters = [], []
        for at, drop in enumerate(drops):
            file = Path(folder) / f"torus{at}.json"
            file.write_text(json.dumps(torus(drop)))
            counters.append(Path(folder) / f"counters{at}")
            options.append(f"file={file},counters={counters[-1]}")
        numbers = [str(size), str(in_flight), str(turns), str(ms)]
        plugin = _core.nic_spec("torus", "loss").file
        lines = _must([str(build()), plugin, ",".join(spaces), *numbers, *options]).splitlines()
        counted = [_sums(path) for path in counters]
    turns_of = [json.loads(line) for line in lines]
    times = [[turn["ns"] for turn in turns_of if turn["nic"] == at] for at in range(len(drops))]
    measured = []
    for at, drop in enumerate(drops):
        cost = median(1 - clean / lossy for clean, lossy in zip(times[0], times[at], strict=True))
        extra = {"drop": drop, "in_flight": in_flight, "turn_ms": ms, "cost": round(cost, 4), **counted[at]}
        right = all(turn["right"] for turn in turns_of if turn["nic"] == at)
        measured.append(_record(drop, size, times[at], right, command, extra))
    return measured


def _record(
    drop: float, size: int, times: list[float], right: bool, command: str, extra: dict[str, Any]
) -> records.Record:
    return records.Record.from_samples(
        times,
        streams=RANKS,
        test="ring_bw",
        via="nic:torus" + (f"/drop:{drop:g}" if drop else ""),
        op="put",
        shape="contiguous",
        bytes=size,
        ranks=RANKS,
        source="host",
        target="host",
        validated=right,
        cpu_percent=None,
        host=machine.known()["host"],
        device=machine.device_name("host"),
        driver="",
        version=_core.version(),
        command=command,
        extra=extra,
    )


def _sums(path: Path) -> dict[str, int]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: sum(line.get(name, 0) for line in lines) for name in COUNTED}


def _must(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    return done.stdout


@click.command()
@click.option("--loss", type=Number(0, 0.5), default=0.01, show_default=True, help="Of datagrams.")
@click.option("--bytes", "size", type=click.IntRange(8, 1 << 26), default=1 << 20, show_default=True)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 64),
    multiple=True,
    default=(4, 1),
    show_default=True,
    help="Messages of a rank.",
)
@click.option(
    "--turns", type=click.IntRange(1, 10000), default=60, show_default=True, help="With losses and without."
)
@click.option("--ms", type=click.IntRange(1, 60000), default=200, show_default=True, help="Of a turn.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("out/loss.jsonl"))
def main(*, loss: float, size: int, in_flight: tuple[int, ...], turns: int, ms: int, out: Path) -> None:
    """Measure, and write the records. Fails when a byte was wrong."""
    command = " ".join(["python apps/loss/loss.py", *sys.argv[1:]])
    measured = []
    try:
        with network(RANKS) as hosts:
            for count in in_flight:
                pair = measure(
                    hosts.names, (0, loss), size=size, in_flight=count, turns=turns, ms=ms, command=command
                )
                clean, lossy = (record.bandwidth_MBps for record in pair)
                cost = pair[-1].extra["cost"]
                click.echo(
                    f"{count} in flight: {clean:.0f} MB/s, with {loss:.1%} lost {lossy:.0f} MB/s, "
                    f"which costs {cost:.1%}"
                )
                measured += pair
    except NoHosts as error:
        raise CannotMeasure(str(error)) from None
    out.parent.mkdir(parents=True, exist_ok=True)
    records.write(out, measured)
    raise SystemExit(0 if all(record.validated for record in measured) else 1)


if __name__ == "__main__":
    main()
