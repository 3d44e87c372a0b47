"""The study: halo exchange and allreduce on simulated tori and fat trees of 16 to 1,024 nodes, and its plots.

    python apps/scale/scaling.py --out out/scale

Most of its time goes into a few simulations with 1,024 nodes. Writes records.jsonl and
scale.html; `--pictures FOLDER` also writes the plots of docs/measure/scale.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import plots
from simulator import Case, build, simulate

from peerway_measure import records

K, M = 1 << 10, 1 << 20
FACES = (K, 64 * K, M)
VECTORS = (8, 64 * K, M, 16 * M)
NODES = (16, 64, 256, 1024)
TORI = {
    1: ("16", "64", "256", "1024"),
    2: ("4x4", "8x8", "16x16", "32x32"),
    3: ("4x2x2", "4x4x4", "8x8x4", "16x8x8"),
    4: ("2x2x2x2", "4x4x2x2", "4x4x4x4", "8x8x4x4"),
}
TREES = {
    "2 levels": ("4x4/1x4", "8x8/1x8", "16x16/1x16", "32x32/1x32"),
    "3 levels": ("4x2x2/1x4x2", "4x4x4/1x4x4", "8x8x4/1x8x8", "16x8x8/1x16x8"),
    "2 levels, a quarter of the links up": ("4x4/1x1", "8x8/1x2", "16x16/1x4", "32x32/1x8"),
}


def machines(at: int) -> list[str]:
    """All machines with NODES[at] nodes."""
    tori = [f"torus:{names[at]}" for names in TORI.values()]
    return tori + [f"fat-tree:{names[at]}" for names in TREES.values()]


def cases(most: int) -> Iterator[Case]:
    """All cases of the study with at most `most` nodes."""
    for hops in (1, 2, 8):
        yield Case("torus:16", "message", (8, M), to=hops)
    for at, count in enumerate(NODES):
        if count <= most:
            yield from _halos(at)
            yield from _allreduces(at)


def _halos(at: int) -> Iterator[Case]:
    same = TORI[4][at]  # the same 4-D lattice on every machine
    for dimensions in TORI:
        own = f"torus:{TORI[dimensions][at]}"
        yield Case(own, "halo/put", FACES)
        yield Case(own, "halo/two-sided", FACES)
    for machine in machines(at):
        if machine == f"torus:{TORI[1][at]}" and NODES[at] > 64:
            continue  # takes minutes: each of thousands of messages shares hundreds of links
        if machine != f"torus:{same}":
            yield Case(machine, "halo/put", (64 * K,), same)
        if NODES[at] < 1024 or machine in (f"torus:{same}", f"fat-tree:{TREES['2 levels'][at]}"):
            # With 1,024 nodes each of these takes minutes: 8,192 messages that all end at different times.
            yield Case(machine, "halo/put", (64 * K,), same, seed=1)
    yield Case(f"torus:{same}", "halo/put", FACES, same, host_gbits=75)


def _allreduces(at: int) -> Iterator[Case]:
    count = NODES[at]
    for dimensions in (3, 4):
        own = f"torus:{TORI[dimensions][at]}"
        yield Case(own, "allreduce/rings", VECTORS)
        yield Case(own, "allreduce/rings", VECTORS, parts=2 * dimensions)
        yield Case(own, "allreduce/doubling", VECTORS)
    tree = f"fat-tree:{TREES['2 levels'][at]}"
    yield Case(tree, "allreduce/rings", VECTORS, TORI[4][at])
    yield Case(tree, "allreduce/doubling", VECTORS)
    ring = Case(f"torus:{TORI[4][at]}", "allreduce/rings", VECTORS, str(count))
    if count < 1024:
        yield ring
        yield Case(tree, "allreduce/rings", VECTORS, str(count))
    else:
        yield Case(ring.machine, ring.pattern, (16 * M,), ring.grid)  # two million messages


@click.command()
@click.option(
    "--nodes", type=click.Choice([str(n) for n in NODES]), default="1024", show_default=True, help="At most."
)
@click.option("--quick", is_flag=True, help="The same as --nodes 16.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Simulations at a time."
)
@click.option(
    "--pictures",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where plots go as SVG (chromium draws them).",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out/scale"), show_default=True
)
def main(*, nodes: str, quick: bool, jobs: int, pictures: Path | None, out: Path) -> None:
    """Simulate, and draw what came out. Fails when a result is wrong, or better than can be."""
    out.mkdir(parents=True, exist_ok=True)
    build()
    todo = list(cases(16 if quick else int(nodes)))
    simulated: list[records.Record] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for done, of_case in enumerate(pool.map(simulate, todo), start=1):
            simulated += of_case
            click.echo(f"{done}/{len(todo)}  {of_case[-1].shape}, {of_case[-1].via}", err=True)
    records.write(out / "records.jsonl", simulated)
    plots.write(simulated, out / "scale.html", pictures)
    wrong = [record for record in simulated if not record.validated]
    for record in wrong:
        click.echo(f"WRONG: {record.as_json()}", err=True)
    click.echo(f"{out / 'records.jsonl'}\n{out / 'scale.html'}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
