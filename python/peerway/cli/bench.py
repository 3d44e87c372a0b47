"""`peerway bench`: measure latency and bandwidth of every path, beside the tools people use today."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from peerway.bench import shapes
from peerway.bench.kinds import DEFAULT_TESTS
from peerway.cli.options import memories, parsed
from peerway.cube import cube_face

if TYPE_CHECKING:
    from peerway.bench.results import Results

PLAIN_WIDTH = 120  # of tables that go to a file or a pipe
QUICK_SIZES = "8,4K,64K,1M,16M"
QUICK_CUBES = (16, 64, 128)
CUBES = (2, 4, 8, 16, 32, 64, 128, 256, 512)
QUICK_BUDGET_S, BUDGET_S = 0.03, 0.15
QUICK_MALLOC_TESTS = ("put_latency", "put_bw", "get_bw")
GPUDIRECT = (
    ("gpudirect:neither", "staged,ucx/staged"),
    ("gpudirect:gdrcopy", "mapped,staged,ucx/staged"),
    ("gpudirect:rdma", "ucx/direct"),
    ("gpudirect:both", "mapped,ucx/direct"),
)


def _peers(text: str) -> Any:
    from peerway.bench.peers import choose

    return choose(text)


@click.command()
@click.argument("tests", nargs=-1, type=click.Choice(DEFAULT_TESTS), metavar="[TEST]...")
@click.option(
    "--ranks", type=click.IntRange(2, 1024), default=2, show_default=True, help="Processes; an even number."
)
@click.option(
    "--device",
    "memories",
    callback=parsed(memories),
    metavar="LIST",
    help="Memory: host, host:malloc, cuda, or a pair such as host-cuda  [default: all that is here]",
)
@click.option(
    "--paths", metavar="LIST", help="Paths, or route for the choice  [default: all available, and route]"
)
@click.option(
    "--sizes",
    callback=parsed(shapes.parse_sizes),
    metavar="LIST",
    help="As 8:64M (doubling) or 8,4K,1M  [default: 8:64M]",
)
@click.option(
    "--shapes",
    "labels",
    default="contiguous",
    callback=parsed(shapes.parse_shapes),
    metavar="LIST",
    help="contiguous, cube:N (its faces), cube:N/i  [default: contiguous; the cube test: N = 2 to 512]",
)
@click.option(
    "--peers", callback=parsed(_peers), metavar="LIST", help="Of openmpi, ucx, nccl, nvshmem, cuda."
)
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Records of each point."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the records here, as they come."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "osu", "jsonl"]), default="table", show_default=True
)
@click.option(
    "--stat",
    type=click.Choice(["p50", "p99", "min", "mean"]),
    default="p50",
    show_default=True,
    help="Which latency the table shows.",
)
@click.option(
    "--table",
    "routes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The route table that `route` follows  [default: this machine's]",
)
@click.option(
    "--pairs",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="all: each pair of ranks in turn, for a matrix of devices.",
)
@click.option("--gpudirect", is_flag=True, help="Four columns: neither, GDRCopy, GPUDirect RDMA, both.")
@click.option("--quick", is_flag=True, help="Few sizes and short loops: about a minute.")
def command(
    tests: Sequence[str], ranks: int, memories: list[tuple[str, str]] | None, paths: str | None,
    sizes: list[int] | None, labels: list[str], peers: Any, repeat: int, out: Path | None, form: str, stat:
    str, routes: Path | None, pairs: str, gpudirect: bool, quick: bool, ) -> None:  # fmt: skip
    """Measure every path, and the automatic choice, between the ranks of this host.

    \b
    put_latency     put with signal, there and back, halved
    get_latency     get and flush: the whole operation
    put_bw get_bw   a window of transfers, then a flush
    put_bibw        windows of puts both ways at once
    put_mbw_mr      windows of puts by all pairs of ranks: message rate
    signal_latency  a signal alone, there and back, halved
    pingpong        as put_latency, and the receiver reads the data
    cube            the faces of an N x N x N array of doubles
    registration    registering memory that is registered already

    Without TEST: all of them. Data is random and checked. Limits of the hardware (one core's memcpy, a bare
    flag) are measured beside. MB = 10^6 bytes.
    """
    from peerway.bench import machine, progress, runner
    from peerway.bench.plan import Plan, make_cases
    from peerway.bench.results import Results
    from peerway.bench.session import PlanRefused, SessionFailed

    if ranks % 2:
        raise click.UsageError(f"--ranks {ranks}: ranks work in pairs, so an even number is needed")
    if gpudirect and paths:
        raise click.UsageError(
            "--gpudirect and --paths exclude each other: the four columns are settings of paths"
        )
    results = Results(_fresh(out))
    chosen = memories or [("host", "host"), ("host:malloc", "host:malloc")]
    if memories is None and machine.has_cuda():
        chosen.append(("cuda", "cuda"))
    wanted = sizes or shapes.parse_sizes(QUICK_SIZES if quick else "8:64M")
    asked = [face.n for label in labels if (face := cube_face(label))]
    cubes = dict.fromkeys(asked) or (QUICK_CUBES if quick else CUBES)
    cases = make_cases(tests or DEFAULT_TESTS, wanted, labels, cubes, chosen, ranks)
    if quick and memories is None and not tests:
        cases = [c for c in cases if c.source != "host:malloc" or c.test in QUICK_MALLOC_TESTS]
    if pairs == "all":
        cases = _each_pair(cases, ranks)
    settings = (
        list(GPUDIRECT)
        if gpudirect
        else [(name.strip(), name.strip()) for name in (paths or "").split(",") if name.strip()]
    )
    budget = QUICK_BUDGET_S if quick else BUDGET_S
    plan = Plan(
        ranks,
        runner.fits_memory(cases, ranks, results),
        settings,
        budget,
        repeat=repeat,
        known=machine.known(),
    )
    environment = {"PEERWAY_ROUTES": str(routes.resolve())} if routes else {}
    if any("ucx" in paths for _, paths in settings):
        environment["PEERWAY_UCX"] = "on"  # on one host it is not started otherwise
    try:
        with progress.shown("measuring") as step:
            runner.run_paths(plan, results, step, environment)
        if peers:
            with progress.shown("peers") as step:
                runner.run_peers(peers, plan, results, step, budget)
    except PlanRefused as error:
        raise click.UsageError(str(error).removeprefix("peerway: ")) from None
    except SessionFailed as error:
        _show(results, form, stat, out)
        raise click.ClickException(str(error)) from None
    _show(results, form, stat, out)
    wrong = sum(not record.validated for record in results.records)
    if wrong:
        raise click.ClickException(
            f"{wrong} of {len(results.records)} results moved wrong data; they are marked"
        )
    if not results.records:
        raise click.ClickException("nothing could be measured; the notes above say why")


def _fresh(out: Path | None) -> Path | None:
    """The file for records, emptied."""
    if out is None:
        return None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(b"")
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    return out


def _each_pair(cases: Sequence[Any], ranks: int) -> list[Any]:
    from dataclasses import replace

    every = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    single = [case for case in cases if not case.kind.all_pairs]
    rest = [case for case in cases if case.kind.all_pairs]
    return [replace(case, pairs=(pair,)) for case in single for pair in every] + rest


def _show(results: Results, form: str, stat: str, out: Path | None) -> None:
    from peerway.bench import table
    from peerway.report.text import as_osu

    if form == "jsonl":
        for record in results.records:
            click.echo(record.as_json())
    elif form == "osu":
        click.echo(as_osu(results.records), nl=False)
    else:
        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=PLAIN_WIDTH)
        for block in table.blocks(results.records):
            statistic = None if stat == "p50" else f"{stat}_us"
            console.print(Text(table.title(block, statistic), style="bold"))
            for part in table.tables(block, console.width, statistic):
                console.print(part)
            console.print()
    notes = Console(stderr=True, highlight=False)
    for note in results.notes:
        notes.print(Text(f"note: {note}", style="dim"), soft_wrap=not notes.is_terminal)
    if out is not None and results.records:
        notes.print(f"{len(results.records)} records in {out}", soft_wrap=True)
