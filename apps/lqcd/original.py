"""Time the lattice QCD program of the original XcalableACC, compiled by `peerway cc`, in turn with `xacc`.

    git clone https://github.com/mnakao/PEACH2-Benchmarks
    python apps/lqcd/original.py --source PEACH2-Benchmarks --gangs 28,4096 --out original.jsonl

main.c of LQCD/XACC-MPI is compiled as it is. Its lattice.h, where its authors set the lattice, the grid of
processes, the gangs of a loop (28) and the GPUs of a host, is copied with other numbers. Both programs read
the links from its file conf_08080816.txt or, if the clone lacks that, from one with random links. Status 1 if
a solve did not converge, or if iterations or correlators differ from those of `xacc`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from evaluate import FAR, HANG_S, Listed, Run, WrongRun, run
from programs import EDGE, FOLDER, LAYOUTS, CannotBuild, Grid, Program

from peerway import _core
from peerway_measure.bench import machine
from peerway_measure.bench.peers import gpus

REPOSITORY = "https://github.com/mnakao/PEACH2-Benchmarks"
SOURCE = Path("LQCD") / "XACC-MPI"
LINKS = "conf_08080816.txt"
TILE = (8, 8, 8, 16)  # sites of the file of links
SOURCES = 12
HOPS = 400  # that the program times together
FAR_RESIDUAL = 1e-14  # |HHx - b|^2, as the programs of this folder allow


@dataclass(frozen=True, slots=True)
class Original:
    """The original program for a lattice of edge⁴ sites, a grid along t and z, and so many gangs a loop."""

    edge: int
    grid: tuple[int, int]
    gangs: int

    @property
    def ranks(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def folder(self) -> Path:
        return FOLDER / f"original-{self.edge}-{self.grid[0]}x{self.grid[1]}-{self.gangs}"

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "peerway", "run", "-n", str(self.ranks), "--", "./original"]


def with_numbers(header: str, numbers: dict[str, int]) -> str:
    """The header with these numbers of its macros. Raises CannotBuild."""
    for name, value in numbers.items():
        header, changes = re.subn(rf"(?m)^(# *define +{name} +)\S+$", rf"\g<1>{value}", header)
        if changes != 1:
            raise CannotBuild(f"lattice.h defines {name} {changes} times, not once; is it another version?")
    return header


def build(original: Original, source: Path) -> None:
    """Compile main.c as it is, with its header for this lattice. Raises CannotBuild."""
    numbers = {"NX": original.edge, "PT": original.grid[0], "PZ": original.grid[1]}
    numbers |= {"NUM_GANGS": original.gangs, "NGPUS": max(1, gpus.present().count)}
    original.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "main.c", original.folder / "main.c")
    header = with_numbers((source / "lattice.h").read_text(), numbers)
    (original.folder / "lattice.h").write_text(header)
    compiler = [sys.executable, "-m", "peerway", "cc", "-O3", "main.c", "-lm", "-o", "original"]
    done = subprocess.run(compiler, cwd=original.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{shlex.join(compiler)} ended with status {done.returncode}:\n{done.stderr}")


def links_of(source: Path) -> tuple[Path, str]:
    """The file of links, and whether they are those of the source or random."""
    if (source / LINKS).exists():
        return (source / LINKS).resolve(), LINKS
    path = FOLDER / "random-links.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_random_links(path)
    return path, "random"


def write_random_links(path: Path) -> None:
    """Write a random matrix of SU(3) for each site of the file and direction."""
    import numpy as np

    numbers = np.random.default_rng(1)
    count = 4 * int(np.prod(TILE))
    random = numbers.normal(size=(count, 3, 3)) + 1j * numbers.normal(size=(count, 3, 3))
    unitary, _ = np.linalg.qr(random)
    links = unitary / (np.linalg.det(unitary) ** (1 / 3))[:, None, None]
    np.savetxt(path, np.stack([links.real, links.imag], -1).reshape(count, 18), fmt="%.16e")


def run_original(original: Original, links: Path, device: str) -> Run:
    """Run the original once; what it found and how long it took. Raises WrongRun."""
    shutil.copyfile(links, original.folder / LINKS)  # it ends by a signal if the file is not there
    settings = {"PEERWAY_ACC": device, "PEERWAY_ACC_FIRST_DEVICE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            original.command, cwd=original.folder, env={**os.environ, **settings},
            capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise WrongRun(f"{shlex.join(original.command)} did not end within {HANG_S:.0f} s") from None
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise WrongRun(f"{shlex.join(original.command)} ended with status {done.returncode}:\n{last}")
    return {
        "program": "original", "gangs": original.gangs, "layout": "sites", "grid": list(original.grid),
        "ranks": original.ranks, **results_of(done.stdout),
    }  # fmt: skip


def results_of(text: str) -> Run:
    """What the original printed of its hops and its solves. Raises WrongRun."""
    elapsed = re.findall(r"elapsed time for solver += ([\d.]+)", text)
    solves = re.findall(r"(?m)^ +\d +\d +(-?\d+) +(\S+)$", text)
    if len(elapsed) != 2 or len(solves) != SOURCES:
        raise WrongRun(
            f"the original printed {len(solves)} of {SOURCES} solves, and {len(elapsed)} of 2 times"
        )
    hops_s, solves_s = map(float, elapsed)
    slices = re.findall(r"(?m)^ +(\d+) +(\d\S*e\S+)$", text)  # each rank prints its own, in any order
    nconv = [int(last) for last, _ in solves]
    return {
        "nconv": nconv,
        "residuals": [float(residual) for _, residual in solves],
        "correlator": [float(value) for _, value in sorted(slices, key=lambda line: int(line[0]))],
        "solve_s": solves_s / SOURCES,
        "iteration_us": solves_s / sum(last + 1 for last in nconv) * 1e6,
        "hop_us": hops_s / HOPS * 1e6,
    }


def run_xacc(program: Program, links: Path) -> Run:
    """Run `xacc` with the same links. Raises CannotBuild and WrongRun.

    On several processes its hop is without halos, that of the original with them.
    """
    result = run(program, ["--gauge", f"file:{links}", "--repeat", str(HOPS)])
    kept = ("program", "layout", "grid", "ranks", "nconv", "correlator", "iteration_us")
    hop = result["hop_us"] + result["halo_us"]
    return {**{key: result[key] for key in kept}, "solve_s": sum(result["solves_s"]) / SOURCES, "hop_us": hop}


def differences(result: Run, right: Run) -> Iterator[str]:
    """What is wrong with a run of the original, beside one of `xacc` with the same links.

    Sums in another order may end a solve an iteration earlier or later.
    """
    if not all(last >= 0 for last in result["nconv"]):
        yield f"not all solves converged: {result['nconv']}"
    if not all(residual <= FAR_RESIDUAL for residual in result["residuals"]):
        yield f"|HHx - b|^2 is {max(result['residuals']):.1e}, more than {FAR_RESIDUAL}"
    if any(abs(last - other) > 1 for last, other in zip(result["nconv"], right["nconv"], strict=True)):
        yield f"iterations {result['nconv']}, of xacc {right['nconv']}"
    values, expected = result["correlator"], right["correlator"]
    if len(values) != len(expected):
        yield f"{len(values)} time slices were printed, not {len(expected)}"
    elif not all(
        abs(value - other) <= FAR * abs(other) for value, other in zip(values, expected, strict=True)
    ):
        yield f"correlator {values}, of xacc {expected}"


def one_round(
    edge: int, grid: tuple[int, int], gangs: list[int], links: Path, device: str
) -> tuple[list[Run], list[str]]:
    """Run all programs of a lattice once; the runs, and what is wrong with them."""
    programs = [
        Program("xacc", edge, layout, grid, "gpu" if device == "gpu" else "cpu") for layout in LAYOUTS
    ]
    originals = [run_original(Original(edge, grid, number), links, device) for number in gangs]
    ours = [run_xacc(program, links) for program in programs]
    wrong = [
        f"original, {edge}⁴, {grid[0]}x{grid[1]}, {result['gangs']} gangs: {why}"
        for result in originals
        for why in differences(result, ours[0])
    ]
    return originals + ours, wrong


def line_of(result: Run, edge: int) -> str:
    """A run as one line of text."""
    gangs = f"{result['gangs']} gangs" if "gangs" in result else ""
    return (
        f"{result['program']:8s} {edge:3d}⁴ {result['grid'][0]}x{result['grid'][1]} {result['layout']:5s} "
        f"{gangs:11s} hop {result['hop_us']:9.2f}  iteration {result['iteration_us']:10.2f} us  "
        f"solve {result['solve_s']:8.4f} s"
    )


@click.command(help=__doc__)
@click.option("--source", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--edges", type=Listed(EDGE), default="16", show_default=True)
@click.option(
    "--grids",
    type=Listed(Grid()),
    default="1x1",
    show_default=True,
    help="Processes along t and z, as 1x1,2x2.",
)
@click.option("--gangs", type=Listed(click.IntRange(1)), default="28,4096", show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(**options: Any) -> None:
    """Build, run, compare, and write a line for each run."""
    source = options["source"] / SOURCE
    cases = [(edge, grid) for edge in options["edges"] for grid in options["grids"]]
    if not (source / "main.c").exists():
        raise click.ClickException(f"there is no {source / 'main.c'}; --source is a clone of {REPOSITORY}")
    device = "gpu" if gpus.present().count else "host"
    same = {"record": "original", "host": machine.known()["host"], "driver": machine.cuda_driver()}
    same |= {"device": machine.device_name("cuda:0" if device == "gpu" else "host")}
    same |= {"version": _core.version()}
    same |= {"command": machine.command().replace("original.py", "python apps/lqcd/original.py", 1)}
    wrong: list[str] = []
    try:
        links, same["links"] = links_of(source)
        for edge, grid in cases:
            for gangs in options["gangs"]:
                build(Original(edge, grid, gangs), source)
        with options["out"].open("a") as file:
            for number in range(1, options["rounds"] + 1):
                for edge, grid in cases:
                    results, why = one_round(edge, grid, options["gangs"], links, device)
                    wrong += why
                    lattice = {"lattice": [edge] * 4, "round": number}
                    lattice |= {"date": datetime.now(UTC).isoformat(timespec="seconds")}
                    for result in results:
                        print(json.dumps(result | lattice | same), file=file, flush=True)
                        click.echo(line_of(result, edge))
    except (CannotBuild, WrongRun) as why_not:
        raise click.ClickException(str(why_not)) from None
    for line in wrong:
        click.echo(f"WRONG: {line}", err=True)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
