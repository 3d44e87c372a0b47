"""`peerway bench`: measure latency and bandwidth of every path, and of other libraries."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from peerway.cli.hosts import Hosts, hosts_options
from peerway_common.cli.numbers import Whole
from peerway_common.cli.options import BadInput, Name, names, parsed
from peerway_common.ending import Ended, ended_by_signals
from peerway_common.units import counted
from peerway_measure.bench import halo as halos
from peerway_measure.bench import shapes
from peerway_measure.bench.kinds import KINDS
from peerway_measure.cli.options import (
    ends_after,
    memories_option,
    need_devices,
    table_environment,
    table_option,
    tell_conditions,
    time_option,
)
from peerway_measure.cli.record_outputs import Outputs
from peerway_measure.record_output import STANDARD, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peerway_measure.bench.halo import Halo
    from peerway_measure.bench.peers import PeerSelection
    from peerway_measure.bench.plan import Plan
    from peerway_measure.bench.request import Request
    from peerway_measure.bench.results import Results


def _peers(text: str) -> list[PeerSelection]:
    from peerway_measure.bench.peers import choose

    return choose(text)


@click.command()
@click.argument("tests", nargs=-1, type=Name(tuple(KINDS)), metavar="[TEST]...")
@click.option(
    "--ranks", type=Whole(2, 1024), help="Processes; an even number  [default: 2; halo: the grid's]"
)
@memories_option("host, host:malloc, cuda, hip")
@click.option(
    "--paths",
    callback=parsed(names),
    metavar="LIST",
    help="Paths; a+b: the route table chooses between a and b; route: it chooses among all. Tests of "
    "plans also take plan/stream, ...  [default: all]",
)
@click.option(
    "--sizes",
    callback=parsed(shapes.parse_sizes),
    metavar="LIST",
    help="Bytes, as 8:64M (doubling) or 8,4K,1M; K is 1024  [default: 8:64M]",
)
@click.option(
    "--shapes",
    default="contiguous",
    callback=parsed(shapes.parse_shapes),
    metavar="LIST",
    help="contiguous, cube:N (its faces), cube:N/i  [default: contiguous; the cube test: N = 2 to 512]",
)
@click.option(
    "--grid", callback=parsed(halos.parse_extents), metavar="NxM", help="halo: ranks in each dimension."
)
@click.option(
    "--local",
    callback=parsed(halos.parse_extents),
    metavar="NxM",
    help="halo: elements of a rank in each dimension.",
)
@click.option(
    "--element", callback=parsed(shapes.parse_size), metavar="BYTES", help="halo: size of one element."
)
@click.option(
    "--width",
    callback=parsed(halos.parse_width),
    metavar="LO:HI,...",
    help="halo: layers below and above in each dimension  [default: 1:1 where the grid has several ranks]",
)
@click.option(
    "--periodic",
    callback=parsed(halos.parse_periodic),
    metavar="1,0,...",
    help="halo: 1 where the dimension is periodic, else 0  [default: 1 in all]",
)
@click.option("--corners", is_flag=True, help="halo: exchange the corners, too.")
@click.option(
    "--compute",
    "computes",
    callback=parsed(shapes.parse_sizes),
    metavar="LIST",
    help="async_pingpong: bytes that the computation processes  [default: 4K:64K]",
)
@click.option(
    "--peers",
    callback=parsed(_peers),
    metavar="LIST",
    help="Also measure openmpi, ucx, nccl, nvshmem or cuda; all: those available here.",
)
@click.option(
    "--repeat",
    type=Whole(1, 1000),
    default=1,
    show_default=True,
    help="Number of complete runs, each with new ranks; `peerway compare` needs several.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each record here once it is measured; - is standard output.",
)
@click.option("--append", is_flag=True, help="Keep the records in --out and measure only what is missing.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "osu", "jsonl"]),
    default="table",
    show_default=True,
    help="table: printed at the end; osu: like the OSU benchmarks; jsonl: each record once measured.",
)
@click.option(
    "--stat",
    type=click.Choice(["p50", "p99", "min", "mean"]),
    default="p50",
    show_default=True,
    help="Latency that the table shows.",
)
@table_option("The route table that `route` follows")
@click.option(
    "--pairs",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="all: each pair of ranks in turn, for a matrix of devices.",
)
@click.option("--gpudirect", is_flag=True, help="Four columns: neither, GDRCopy, GPUDirect RDMA, both.")
@click.option("--quick", is_flag=True, help="Few sizes and short loops: about a minute.")
@time_option()
@hosts_options
def command(
    peers: list[PeerSelection] | None, out: Path | None, append: bool, form: str, stat: str,
    routes: Path | None, pairs: str, time_s: float | None, hosts: Hosts, **options: Any,
) -> None:  # fmt: skip
    """Measure every path, and the automatic choice, between the ranks of this host, or of several.

    \b
    put_latency     put with signal, half a round trip
    get_latency     get and flush: the whole operation
    put_bw get_bw   a window of transfers, then a flush
    put_bibw        windows of puts in both directions at once
    put_mbw_mr      windows of puts by all pairs of ranks: message rate
    signal_latency  a signal alone, half a round trip
    pingpong        as put_latency, and the receiver reads the data
    cube            the faces of an N x N x N array of doubles
    registration    registering memory that is already registered
    exchange        a plan: put with signal, and wait for the partner's
    plan_latency    put and wait as two plans, half a round trip
    send_latency    as plan_latency, with a send and its receive
    send_exchange   as exchange, with a send and a receive
    kernel_latency  put with signal from inside a kernel, half a round trip
    halo            the halo of a distributed array (--grid ...)
    async_pingpong  receive, compute and send, by the CPU or the GPU

    Without TEST, all tests down to registration run. Data is random and verified. The limits of the
    hardware (memcpy by one core, a bare flag) are measured, too. MB = 10^6 bytes.
    """
    from peerway_measure.bench import machine, resume
    from peerway_measure.bench.peers import PEERS
    from peerway_measure.bench.request import Request
    from peerway_measure.bench.results import Results
    from peerway_measure.cli.bench_results import problem_of, show

    if append and out in (None, STANDARD):
        raise click.UsageError("--append needs a file to continue; name it with --out")
    try:
        request = Request(all_pairs=pairs == "all", halo=_halo(options), **options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if peers and hosts.named:
        raise click.UsageError("--peers are measured on this host alone; leave out --hosts, or --peers")
    need_devices(name for pair in request.measured_memories() for name in pair)
    form = "jsonl" if out == STANDARD else form
    ends = ends_after(time_s)
    results = Results()
    plan = replace(request.plan(results), ends=ends, launch=hosts.words())
    _need_time(time_s, plan, request.repeat, peers or [])
    with ended_by_signals(), closing(Outputs(out, append, form)) as outputs:
        if not hosts.named:  # the conditions of other hosts are not known
            tell_conditions(request.processes)
        results.outputs = outputs.all
        known = machine.known() | ({"host": hosts.names()} if hosts.named else {})
        recorded = resume.of_records(outputs.before, known, PEERS)
        try:
            plan = replace(plan, known=known, recorded=dict(recorded))
            problem = _measured(request, plan, peers or [], table_environment(routes), results)
        except Ended as end:
            with suppress(OSError):
                show(results, form, stat)
            outputs.tell_end(len(results.records), end)
            raise Exit(end.code) from None
        results.note_unmeasured(_remedy(outputs))
        show(results, form, stat)
        outputs.tell(len(results.records))
        problem = problem or problem_of(results, bool(recorded))
    if problem:
        raise click.ClickException(problem)


def _remedy(outputs: Outputs) -> str:
    """What to do about cases for which there was no time."""
    return "the same command with --append measures them" if outputs.file else "give it more --time"


def _need_time(time_s: float | None, plan: Plan, repeat: int, peers: Sequence[PeerSelection]) -> None:
    """Refuse a time that is too short even to start the ranks as often as needed."""
    from peerway_measure.bench.runs import needed_s

    needed = needed_s(plan, repeat, peers)
    if time_s is not None and time_s < needed:
        fewer = ", or a lower --repeat" if repeat > 1 else ""
        raise click.UsageError(
            f"--time {time_s:g}s is too short: starting the ranks of {counted(repeat, 'run')} takes about "
            f"{needed:g}s; give more than that{fewer}"
        )


def _measured(
    request: Request,
    plan: Plan,
    peers: Sequence[PeerSelection],
    environment: dict[str, str],
    results: Results,
) -> str:
    """Measure everything. Returns what ended it early, or ""."""
    from peerway_measure.bench import progress
    from peerway_measure.bench.runs import measure
    from peerway_measure.bench.session import PlanRefused, SessionFailed

    try:
        environ = {**request.environment(), **environment}
        measure(plan, request.repeat, peers, results, environ, progress.shown)
    except PlanRefused as error:
        raise BadInput(str(error)) from None
    except (SessionFailed, WriteFailed) as error:  # the results so far are shown
        return str(error)
    return ""


def _halo(options: dict[str, Any]) -> Halo | None:
    """The halo of the options, which are removed from `options`; None without such options. Raises
    ValueError.
    """
    names = ("grid", "local", "element", "width", "periodic", "corners")
    given = {name: options.pop(name) for name in names}
    missing = [f"--{name}" for name in names[:3] if given[name] is None]
    if not any(given.values()):
        return None
    if "halo" not in options["tests"]:
        option = next(name for name, value in given.items() if value)
        raise ValueError(f"--{option} belongs to the test halo; name that test, or omit --{option}")
    if missing:
        raise ValueError(f"a halo also needs {' and '.join(missing)}")
    return halos.make(**given)
