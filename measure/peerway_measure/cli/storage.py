"""`peerway storage`: measure a mounted file system from its clients."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from peerway.cli.hosts import Hosts, hosts_options
from peerway_common.cli.numbers import Number, Whole
from peerway_common.cli.options import BadInput, names, parsed
from peerway_common.cli.verbs import VerbGroup
from peerway_common.ending import Ended, ended_by_signals
from peerway_common.terminal import say
from peerway_common.units import counted
from peerway_measure.bench import shapes
from peerway_measure.cli import storage_run
from peerway_measure.cli.options import tell_conditions
from peerway_measure.cli.record_outputs import Outputs
from peerway_measure.record_output import STANDARD
from peerway_measure.storage.measure import streams_of
from peerway_measure.storage.request import MODES, TESTS, BadRequest, Request
from peerway_measure.storage.states import STATES

if TYPE_CHECKING:
    pass


class Measures(VerbGroup):
    """A group of commands that measures if no command is named: `peerway storage FOLDER`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `measure` if no command is named."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["measure", *args]
        return super().parse_args(ctx, args)


def subset_of(allowed: tuple[str, ...]) -> Any:
    """A parser of "a,b" that refuses names that are not in `allowed`."""

    def parse(text: str) -> list[str]:
        chosen = names(text)
        for name in chosen:
            if name not in allowed:
                raise ValueError(f"'{name}' is not one of {', '.join(allowed)}")
        return list(dict.fromkeys(chosen))

    return parsed(parse)


def sizes_of(text: str) -> list[int]:
    """Read "64M,1G", and keep the order. Raises ValueError."""
    sizes = [shapes.parse_size(word) for word in text.split(",")]
    return list(dict.fromkeys(sizes))


def stripes_of(text: str) -> list[str]:
    """Read "default,4:16M". "default" stands for the file system's own layout, which is "" in `Request`."""
    return list(dict.fromkeys("" if name == "default" else name for name in names(text)))


@click.group(cls=Measures)
def command() -> None:
    """Measure a mounted file system: `peerway storage FOLDER [TEST]...`, or import results of other tools.

    `peerway storage measure --help` lists the tests and their options.
    """


_OUT = click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the records to this file; - is standard output.",
)
_APPEND = click.option("--append", is_flag=True, help="Add to the records that --out already has.")
_NODE_TYPE = click.option(
    "--node-type", default="", metavar="NAME", help="The type of this node, for tables by node type."
)


@command.command("measure", short_help="Measure the file system of FOLDER. The word measure is optional.")
@click.argument("folder", callback=parsed(Path))  # no click.Path: it would look at a mount that may hang
@click.argument("tests", nargs=-1, type=click.Choice(TESTS), metavar="[TEST]...")
@click.option(
    "--engine",
    "engines",
    default="posix",
    show_default=True,
    callback=parsed(names),
    metavar="LIST",
    help="I/O engines: posix, fio, gds.",
)
@click.option(
    "--size",
    "sizes",
    default="1G",
    show_default=True,
    callback=parsed(sizes_of),
    metavar="LIST",
    help="Size of each stream's file, as in 64M,1G.",
)
@click.option(
    "--block",
    "blocks",
    default="1M",
    show_default=True,
    callback=parsed(sizes_of),
    metavar="LIST",
    help="Size of one read or write, as in 64K,1M,16M.",
)
@click.option(
    "--streams",
    default="1,4,all",
    show_default=True,
    callback=parsed(streams_of),
    metavar="LIST",
    help="Concurrent streams per node; all: one for each CPU that this process may use.",
)
@click.option(
    "--mode",
    "modes",
    default="buffered",
    show_default=True,
    callback=subset_of(MODES),
    metavar="LIST",
    help="How files are written and read: buffered, fsync (included in the time), direct (O_DIRECT), "
    "direct+fsync.",
)
@click.option(
    "--stripes",
    default="default",
    show_default=True,
    callback=parsed(stripes_of),
    metavar="LIST",
    help="Lustre: targets per file and stripe size, as in 1,4:16M,-1 (-1: all targets).",
)
@click.option(
    "--states",
    default=",".join(STATES),
    show_default=True,
    callback=subset_of(STATES),
    metavar="LIST",
    help="Cache states in which to read.",
)
@click.option(
    "--drop-server",
    default="",
    metavar="COMMAND",
    help="Command that drops the server's cache, for the state after_drop. A shell runs it on the first "
    "node.",
)
@click.option(
    "--small-files",
    type=Whole(1, 1_000_000),
    default=1000,
    show_default=True,
    help="Files per stream in the metadata test.",
)
@click.option(
    "--random-blocks",
    type=Whole(1, 1_000_000),
    default=1000,
    show_default=True,
    help="Blocks per stream in the random test.",
)
@click.option(
    "--repeat",
    type=Whole(1, 1000),
    default=1,
    show_default=True,
    help="Number of complete runs; `peerway compare` needs several.",
)
@click.option(
    "--limit",
    "limit_s",
    type=Number(0.1, 7 * 24 * 3600),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one operation.",
)
@_NODE_TYPE
@_OUT
@_APPEND
@hosts_options
def measure(
    folder: Path, out: Path | None, append: bool, hosts: Hosts, engines: list[str], **options: Any
) -> None:
    """Write and read files below FOLDER, prove what the caches held, and remove the files again.

    \b
    write     write new files, and close them
    read      read these files in each cache state
    shared    as write and read, but all streams share one file, with --hosts those of all nodes
    random    latency of reads and writes of 4 KiB at random places
    metadata  create, stat, read, rename and remove small files

    Without TEST it runs all. Options that take a LIST are factors: each of their combinations is measured, in
    a new random order in each run. docs/measure/storage.md says how cache states are made and proved.
    MB = 10^6 bytes.
    """
    from peerway_measure.bench.results import Results

    if append and out in (None, STANDARD):
        raise click.UsageError("--append needs a file to continue; name it with --out")
    options["tests"] = tuple(options["tests"]) or TESTS
    try:
        request = Request(place=Path(folder).absolute(), engines=storage_run.engines(engines), **options)
    except BadRequest as error:
        raise click.UsageError(str(error)) from None
    form = "jsonl" if out == STANDARD else "table"
    with ended_by_signals(), closing(Outputs(out, append, form)) as outputs:
        results = Results(outputs.all)
        try:
            if not hosts.named:  # each of several hosts checks for itself
                storage_run.look(request)
            tell_conditions(max(request.streams), "streams")
            problem = storage_run.run(request, hosts, results)
        except Ended as end:
            with suppress(OSError):
                storage_run.show(results, form)
            outputs.tell_end(len(results.records), end)
            raise Exit(end.code) from None
        storage_run.show(results, form)
        outputs.tell(len(results.records))
    wrong = sum(not r.validated for r in results.records if r.via == "posix")
    mismatch = (
        f"in {wrong} records the data read differs from the data written, or could not be compared with it"
    )
    problem = problem or (mismatch if wrong else "")
    if problem or not results.records:
        raise click.ClickException(problem or "nothing could be measured; the notes above say why")


@command.command("import", short_help="Convert other tools' results into records.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_NODE_TYPE
@_OUT
@_APPEND
def import_(files: tuple[Path, ...], node_type: str, out: Path | None, append: bool) -> None:
    """Convert results of IOR, mdtest, elbencho, fio and gdsio into records. The contents of each FILE show
    which tool wrote it. A row that cannot be a record is left out: it is named on standard error with its
    line, the others are kept, and the exit code is 1. It is 2 if a file has no result at all.
    """
    from peerway_measure.storage.imports import BadResult, read

    converted = omitted = 0
    with closing(Outputs(out, append, "jsonl" if out in (None, STANDARD) else "table")) as outputs:
        for file in files:
            try:
                rows = read(file, node_type)
            except BadResult as error:
                raise BadInput(f"{file}: {error}") from None
            except OSError as error:
                raise BadInput(f"cannot read {file}: {error.strerror or error}") from None
            for record in rows.records:
                for output in outputs.all:
                    output.add(record)
            for row in rows.omitted:
                say(f"{file}: left out {row}", err=True)
            converted += len(rows.records)
            omitted += len(rows.omitted)
        outputs.tell(converted)
    if omitted:
        raise click.ClickException(
            f"{counted(omitted, 'row')} left out of {converted + omitted}; the notes above name them"
        )


@command.command()
@click.argument("folder", callback=parsed(Path))  # no click.Path: it would look at a mount that may hang
@click.option(
    "--limit",
    "limit_s",
    type=Number(0.1, 7 * 24 * 3600),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one operation.",
)
@click.option(
    "--others",
    is_flag=True,
    help="Also remove files of runs on other hosts. First make sure that none of these still runs.",
)
def clean(folder: Path, limit_s: float, others: bool) -> None:
    """Remove the files that killed runs left in FOLDER. It removes only what their manifests list."""
    from peerway_measure.storage.folder import clean as clean_place
    from peerway_measure.storage.operation import OperationFailed

    try:
        lines = clean_place(folder.absolute(), limit_s, others)
    except OperationFailed as error:
        raise click.ClickException(str(error)) from None
    for line in lines or [f"{folder} has no files of killed runs"]:
        say(line)
