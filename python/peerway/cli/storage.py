"""`peerway storage`: measure a mounted file system from its clients."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from peerway.bench import shapes
from peerway.cli.ending import Ended, ended_by_signals
from peerway.cli.hosts import Hosts, hosts_options
from peerway.cli.input import BadInput
from peerway.cli.options import names, parsed, tell_conditions
from peerway.cli.record_outputs import Outputs
from peerway.record_output import STANDARD, WriteFailed
from peerway.storage.measure import streams_of
from peerway.storage.request import MODES, TESTS, BadRequest, Request
from peerway.storage.states import STATES
from peerway.terminal import say

if TYPE_CHECKING:
    from peerway.bench.results import Results


class Measures(click.Group):
    """A group whose unnamed command measures: `peerway storage FOLDER`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the command that is meant."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["measure", *args]
        return super().parse_args(ctx, args)


def one_of(allowed: tuple[str, ...]) -> Any:
    """A parser of "a,b" that refuses what is not allowed."""

    def parse(text: str) -> list[str]:
        found = names(text)
        for name in found:
            if name not in allowed:
                raise ValueError(f"'{name}' is none of {', '.join(allowed)}")
        return list(dict.fromkeys(found))

    return parsed(parse)


@click.group(cls=Measures)
def command() -> None:
    """Measure a mounted file system: `peerway storage FOLDER [TEST]...`, or import the results of others."""


_OUT = click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the records here; - is standard output.",
)
_APPEND = click.option("--append", is_flag=True, help="Keep the records of --out and add to them.")
_NODE_TYPE = click.option(
    "--node-type", default="", metavar="NAME", help="What kind of node this is, for tables by node type."
)


@command.command("measure")
@click.argument("folder", callback=parsed(Path))  # no click.Path: it would look at a mount that may hang
@click.argument("tests", nargs=-1, type=click.Choice(TESTS), metavar="[TEST]...")
@click.option(
    "--engine",
    "engines",
    default="posix",
    show_default=True,
    callback=parsed(names),
    metavar="LIST",
    help="posix, fio, gds.",
)
@click.option(
    "--size",
    default="1G",
    show_default=True,
    callback=parsed(shapes.parse_size),
    metavar="BYTES",
    help="Of the file of a stream.",
)
@click.option(
    "--block",
    default="1M",
    show_default=True,
    callback=parsed(shapes.parse_size),
    metavar="BYTES",
    help="Of one read or write.",
)
@click.option(
    "--streams",
    default="1,4,all",
    show_default=True,
    callback=parsed(streams_of),
    metavar="LIST",
    help="At once on a node.",
)
@click.option(
    "--mode",
    "modes",
    default="buffered",
    show_default=True,
    callback=one_of(MODES),
    metavar="LIST",
    help="buffered, fsync, direct.",
)
@click.option(
    "--states",
    default=",".join(STATES),
    show_default=True,
    callback=one_of(STATES),
    metavar="LIST",
    help="Of the caches, for reads.",
)
@click.option(
    "--drop-server",
    default="",
    metavar="COMMAND",
    help="Command that drops the server's cache, for after_drop; nothing else does.",
)
@click.option(
    "--small-files",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="A stream, for metadata.",
)
@click.option(
    "--random-blocks",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="A stream, for random.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Whole runs, for `peerway compare`.",
)
@click.option(
    "--limit",
    "limit_s",
    type=click.FloatRange(0.1),
    default=600,
    show_default=True,
    help="Seconds for one operation.",
)
@_NODE_TYPE
@_OUT
@_APPEND
@hosts_options
def measure(
    folder: Path, out: Path | None, append: bool, hosts: Hosts, engines: list[str], **asked: Any
) -> None:
    """Write and read files below FOLDER, prove what the caches held, and remove everything again.

    \b
    write     new files, from their beginning to their close
    read      the same files in each state: cold, warm_here, warm_elsewhere, after_drop
    shared    parts of one file by all streams, instead of a file each
    random    blocks of 4 KiB at random places: latency
    metadata  create, stat, open, rename and remove small files

    Without TEST: all. docs/storage.md says how states are made and proved. MB = 10^6 bytes.
    """
    from peerway.bench.results import Results

    if append and out in (None, STANDARD):
        raise click.UsageError("--append needs a file to continue; name it with --out")
    asked["tests"] = tuple(asked["tests"]) or TESTS
    try:
        request = Request(place=Path(folder).absolute(), engines=_engines(engines), **asked)
    except BadRequest as error:
        raise click.UsageError(str(error)) from None
    form = "jsonl" if out == STANDARD else "table"
    with ended_by_signals(), closing(Outputs(out, append, form)) as outputs:
        tell_conditions(max(request.streams))
        results = Results(outputs.all)
        try:
            problem = _runs(request, hosts, results)
        except Ended as end:
            with suppress(OSError):
                _show(results, form)
            outputs.tell_end(len(results.records), end)
            raise Exit(end.code) from None
        _show(results, form)
        outputs.tell(len(results.records))
    wrong = sum(not r.validated for r in results.records if r.via == "posix")
    said = f"the data of {wrong} records was not what had been written, or could not be compared with it"
    problem = problem or (said if wrong else "")
    if problem or not results.records:
        raise click.ClickException(problem or "nothing could be measured; the notes above say why")


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_NODE_TYPE
@_OUT
@_APPEND
def import_(files: tuple[Path, ...], node_type: str, out: Path | None, append: bool) -> None:
    """Make records of the results of IOR, mdtest, elbencho, fio and gdsio; each FILE is recognised by what it
    holds.
    """
    from peerway.storage.imports import BadResult, read

    with closing(Outputs(out, append, "jsonl" if out in (None, STANDARD) else "table")) as outputs:
        made = 0
        for file in files:
            try:
                found = read(file, node_type)
            except BadResult as error:
                raise BadInput(f"{file}: {error}") from None
            except OSError as error:
                raise BadInput(f"cannot read {file}: {error.strerror or error}") from None
            for record in found:
                for output in outputs.all:
                    output.add(record)
            made += len(found)
        outputs.tell(made)


@command.command()
@click.argument("folder", callback=parsed(Path))  # no click.Path: it would look at a mount that may hang
@click.option(
    "--limit",
    "limit_s",
    type=click.FloatRange(0.1),
    default=600,
    show_default=True,
    help="Seconds for one operation.",
)
@click.option(
    "--others", is_flag=True, help="Also what runs on other hosts have left: see first that none is running."
)
def clean(folder: Path, limit_s: float, others: bool) -> None:
    """Remove from FOLDER what runs that were killed have left there: by their manifests, and nothing else."""
    from peerway.storage.folder import clean as clean_place
    from peerway.storage.operation import OperationFailed

    try:
        said = clean_place(folder.absolute(), limit_s, others)
    except OperationFailed as error:
        raise click.ClickException(str(error)) from None
    for line in said or [f"{folder} has nothing of killed runs"]:
        say(line)


def _engines(asked: list[str]) -> list[str]:
    from peerway.storage.engines import ENGINES

    found = [name for word in asked for name in ENGINES if name == word or name.startswith(f"{word}/")]
    for word in asked:
        if not any(name == word or name.startswith(f"{word}/") for name in ENGINES):
            raise click.UsageError(f"there is no engine '{word}'; there are {', '.join(ENGINES)}")
    for name in found:
        if why := ENGINES[name].missing():
            raise click.ClickException(f"the engine {name} cannot be used: {why}")
    return found


def _runs(request: Request, hosts: Hosts, results: Results) -> str:
    """Measure everything; what kept that from going to its end, if anything did."""
    from peerway.bench.session import PlanRefused, SessionFailed
    from peerway.storage.operation import OperationFailed
    from peerway.storage.session import measure_here, measure_on

    try:
        if hosts.named:
            measure_on(
                replace(request, launch=hosts.words()), len({host.name for host in hosts.named}), results
            )
        else:
            measure_here(request, results)
    except (BadRequest, PlanRefused) as error:
        raise BadInput(str(error)) from None
    except (OperationFailed, SessionFailed, WriteFailed) as error:
        return str(error)
    return ""


def _show(results: Results, form: str) -> None:
    from rich.text import Text

    from peerway.storage.table import rows
    from peerway.terminal import Terminal

    if form == "table":
        for line in rows(results.records):
            say(line)
    notes = Terminal(stderr=True)
    for note in results.notes:
        notes.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
