"""Linpack on simulated tori and fat trees, with the kernels of one H200: the study, its records, its picture.

    python apps/scale/linpack.py --out out/linpack

DGEMM has the rate that it had on one GPU with as large a part of the matrix. What else takes time there is
fitted over N: so much for each column of a panel, and for each element of U.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bounds
import click
import plotly.graph_objects as go
import simulator

from peerway import _core
from peerway_measure import records
from peerway_measure.records import Record
from peerway_measure.report.pictures import CannotDraw, as_svg

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "results" / "hpl" / "h200-x1.jsonl"
NB = 1024
LARGEST = 131072  # N on one GPU: 92 % of its memory
RPEAK = 66.9  # TFLOP/s of a GPU, as in the measured records
TORI = {4: "torus:2x2", 16: "torus:4x4", 64: "torus:8x8", 256: "torus:16x16"}
TREES = {16: "fat-tree:4x4/1x4", 64: "fat-tree:8x8/1x8", 256: "fat-tree:16x16/1x16"}


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernel times of a GPU, in the units of the simulator's options."""

    gemm_tflops: float
    column_us: float
    element_ps: float

    def seconds(self, n: int, nb: int = NB) -> float:
        """Seconds on one GPU without any waiting, in closed form."""
        behind = [n - (k + 1) * nb for k in range(n // nb)]
        gemm = sum(2 * nb * rows * rows for rows in behind) / (1e12 * self.gemm_tflops)
        moved = sum(nb * rows for rows in behind) * self.element_ps / 1e12
        return gemm + moved + n * self.column_us / 1e6


@cache
def runs() -> list[dict[str, float]]:
    """The measured runs of hpl on one GPU with the study's NB, by N."""
    lines = [json.loads(line) for line in MEASURED.read_text().splitlines()]
    return sorted((run for run in lines if run.get("nb") == NB), key=lambda run: run["n"])


@cache
def kernels() -> Kernels:
    """The rate of DGEMM at the largest N, and a fit of the other times.

    The other time (total minus DGEMM) is modelled as a N + b N^2 / 2, by least squares of time / N over N.
    """
    n = [run["n"] for run in runs()]
    rest = [(run["seconds"] - run["gemm_s"]) / run["n"] for run in runs()]
    mean_n, mean_rest = sum(n) / len(n), sum(rest) / len(rest)
    slope = sum((x - mean_n) * (y - mean_rest) for x, y in zip(n, rest, strict=True)) / sum(
        (x - mean_n) ** 2 for x in n
    )
    rate = runs()[-1]["gemm_gflops_rank"] / 1e3
    return Kernels(round(rate, 2), round(1e6 * (mean_rest - slope * mean_n), 3), round(2e12 * slope, 1))


@dataclass(frozen=True, slots=True)
class Linpack:
    """One prediction. `slower` multiplies the times of a panel's kernels."""

    machine: str
    n: int
    panels: int = 128
    broadcast: str = "1ringM"
    doubling: bool = False
    link_gbits: int = 75
    slower: float = 1
    whole: bool = False

    @property
    def grid(self) -> str:
        return bounds.extents_text(self.machine)

    @property
    def numbers(self) -> dict[str, float]:
        """The input of bounds.hpl_us()."""
        p, q = bounds.extents(self.grid)
        own = kernels()
        return {
            "p": p,
            "q": q,
            "nb": NB,
            "link_gbits": self.link_gbits,
            "gemm_tflops": own.gemm_tflops,
            "column_us": own.column_us * self.slower,
            "element_ps": own.element_ps,
        }

    @property
    def options(self) -> list[str]:
        """The simulator's options.

        If rows and columns of the grid share links, as in a tree, messages compete, so all of them are
        simulated.
        """
        whole = self.whole or not self.machine.startswith("torus")
        options: dict[str, object] = {"machine": self.machine, "grid": self.grid, "pattern": "hpl"}
        options |= {"n": self.n, "nb": NB, "panels": self.panels, "bcast": self.broadcast}
        options |= {"exchange": "whole" if whole else "alike", "link-gbits": self.link_gbits}
        options |= {"pivots": "doubling" if self.doubling else "all"}
        for name in ("gemm_tflops", "column_us", "element_ps"):
            options[name.replace("_", "-")] = f"{self.numbers[name]:g}"
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]

    @property
    def via(self) -> str:
        """The name of the variant in records."""
        slower = f"/panels-x{self.slower:g}" if self.slower != 1 else ""
        return self.broadcast + ("/doubling" if self.doubling else "") + slower


def weak(machines: dict[int, str]) -> Iterator[Linpack]:
    """Cases of weak scaling: each GPU's memory is as full as in the largest run on one GPU."""
    for gpus, machine in machines.items():
        for doubling in (False, True):
            yield Linpack(machine, LARGEST * round(gpus**0.5), doubling=doubling)


def cases() -> Iterator[Linpack]:
    """All cases of the study."""
    yield from weak(TORI)
    yield from weak(TREES)
    n = LARGEST * 16
    torus, tree = TORI[256], TREES[256]
    for machine in (torus, tree):
        yield Linpack(machine, n // 2)
        yield Linpack(machine, n, link_gbits=200)
        yield Linpack(machine, n, link_gbits=400)
    yield Linpack(torus, n, slower=4)
    for variant in ("1ring", "2ringM", "long", "tree"):
        yield Linpack(torus, n, broadcast=variant)
    yield Linpack("torus:8x32", n)
    yield Linpack(torus, n, panels=512)  # what more panels change
    yield Linpack(tree, n, panels=64)


def simulate(case: Linpack) -> Record:
    """Simulate a case. The record is valid if every rank got its data, and not faster than the lower
    bound.
    """
    (simulated,) = simulator.run(case.options)
    us, n = float(str(simulated["us"])), case.n
    gpus = int(str(simulated["ranks"]))
    least = bounds.hpl_us(simulated, case.numbers, bounds.links_of_node(case.machine))
    tflops = 2 / 3 * n**3 / us / 1e6
    extra: dict[str, object] = {
        "simulated": True,
        "machine": case.machine,
        "grid": case.grid,
        "least_us": least,
    }
    extra |= {name: simulated[name] for name in ("n", "panels", "busy", "pivot_us", "shares")}
    extra |= case.numbers | {"tflops": round(tflops, 1), "tflops_gpu": round(tflops / gpus, 2)}
    nic = simulator.NIC | {"link-gbits": case.link_gbits}
    return Record.from_samples(
        [1e3 * us],
        test="simulated_hpl",
        via=case.via,
        op="hpl",
        shape=f"{case.machine} grid:{case.grid}",
        bytes=8 * n * n,
        ranks=gpus,
        source="simulated",
        target="simulated",
        validated=simulated["right"] is True and us >= least,
        cpu_percent=None,
        host=f"SimGrid {simulated['simgrid']}",
        device="simulated: {link-gbits} Gbit/s a link, {hop-ns} ns a hop, {message-ns} ns a message".format(
            **nic
        ),
        driver="",
        version=_core.version(),
        command=" ".join(["python apps/scale/simulator.py", *case.options]),
        extra=extra,
    )


def picture(simulated: list[Record]) -> go.Figure:
    """TFLOP/s per GPU by number of GPUs, with the same memory used on each."""
    single = 2 / 3 * LARGEST**3 / kernels().seconds(LARGEST) / 1e12
    figure = go.Figure()
    for name, machines, colour in (("torus", TORI, "#4c78a8"), ("fat tree", TREES, "#e45756")):
        for doubling, dash in ((False, "solid"), (True, "dot")):
            wanted = {case.machine: case for case in weak(machines) if case.doubling == doubling}
            line = [r for r in simulated if (case := wanted.get(r.extra["machine"])) and matches(r, case)]
            line.sort(key=lambda r: r.ranks)
            pivots = "by doubling" if doubling else "with all at once"
            x = ["1", *(str(r.ranks) for r in line)]
            y = [single, *(r.extra["tflops_gpu"] for r in line)]
            look = {"color": colour, "dash": dash}
            figure.add_trace(go.Scatter(x=x, y=y, name=f"{name}, pivots {pivots}", line=look))
    figure.update_xaxes(title_text="GPUs", type="category")
    figure.update_yaxes(title_text="TFLOP/s a GPU", rangemode="tozero")
    text = "Linpack, N = 131,072 √GPUs<br><sub>simulated: 75 Gbit/s a link; kernels of one H200</sub>"
    return figure.update_layout(title=text, template="plotly_white", width=900, height=460)


def matches(record: Record, case: Linpack) -> bool:
    """Whether the record belongs to the case."""
    return record.command.split()[2:] == case.options


@click.command()
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Simulations at a time."
)
@click.option(
    "--pictures", type=click.Path(file_okay=False, path_type=Path), help="Where the plot goes as SVG."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out/linpack"), show_default=True
)
def main(*, jobs: int, pictures: Path | None, out: Path) -> None:
    """Simulate, and draw what came out. Fails when a result is wrong, or better than can be."""
    simulator.build()
    out.mkdir(parents=True, exist_ok=True)
    simulated: list[Record] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for record in pool.map(simulate, cases()):
            simulated.append(record)
            click.echo(f"{record.shape}, {record.via}: {record.p50_us / 1e6:.1f} s", err=True)
    records.write(out / "records.jsonl", simulated)
    if pictures is not None:
        try:
            (svg,) = as_svg([picture(simulated)])
        except CannotDraw as error:
            raise click.ClickException(str(error)) from error
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / "hpl-predicted.svg").write_text(svg + "\n")
    raise SystemExit(1 if any(not record.validated for record in simulated) else 0)


if __name__ == "__main__":
    main()
