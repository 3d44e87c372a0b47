"""`peerway campaign`: measurements of a whole cluster over days."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from peerway.campaign import plan as plans
from peerway.campaign.journal import Busy, Changed, Journal
from peerway.cli.ending import Ended, ended_by_signals
from peerway.cli.input import BadInput
from peerway.records import RecordError
from peerway.terminal import say

if TYPE_CHECKING:
    from peerway.campaign.run import Left
    from peerway.records import Record

_BEGINNING = """# A campaign of `peerway campaign run {folder}`; docs/campaigns.md has all keys.
name = {name}
repeats = 25
seed = {seed}

[nodes]
{nodes}
[launch]
by = "{by}"

[limits]
nodes_at_once = 1
time = "15m"

[[tests]]
name = "storage"
command = "peerway storage /a/folder/to/measure write read --size 1G --streams 1 --out -"
"""
_HEALTH_S = 280  # for all tests of a node
_FOLDER = click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))


@click.group()
def command() -> None:
    """Measure a whole cluster: a folder with a campaign.toml, run for days, ended and resumed at will."""


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--nodes",
    default="",
    metavar="LIST",
    help="As node[01-16]; several with spaces  [default: as Slurm says, else this host]",
)
def init(folder: Path, nodes: str) -> None:
    """Make FOLDER with a campaign.toml to edit: node types by the partitions and features of Slurm, or as
    given.
    """
    import shutil
    import subprocess

    from peerway.campaign.starters import from_slurm

    path = folder / plans.NAME
    if path.exists():
        raise click.ClickException(f"{path} is there already; edit it, or name another folder")
    by = "slurm" if not nodes and shutil.which("sinfo") else "hosts"
    try:
        listed = from_slurm() if by == "slurm" else f"all = {json.dumps(nodes.split() or ['localhost'])}\n"
    except (OSError, subprocess.SubprocessError) as error:
        raise click.ClickException(
            f"sinfo does not tell the nodes ({error}); name them with --nodes"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    text = _BEGINNING.format(
        folder=folder, name=json.dumps(folder.absolute().name), seed=int(time.time()), nodes=listed, by=by
    )
    path.write_text(text)
    say(f"{path}: edit its tests, then run `peerway campaign run {folder}`")


@command.command()
@_FOLDER
@click.option(
    "--health",
    is_flag=True,
    help="Measure one round, in under five minutes a node. The exit code is 1 if a node is odd.",
)
def run(folder: Path, health: bool) -> None:
    """Make the measurements that FOLDER lacks. Stop it at any time; the next run resumes."""
    plan = _plan(folder)
    if health:
        raise Exit(_health(folder, plan))
    left = _run(plan, Journal(folder))
    for name, why in left.given_up.items():
        say(f"not measured: {name}: {why}", err=True)
    _show_status(plan, Journal(folder))
    if left.given_up:
        raise click.ClickException(
            f"{len(left.given_up)} measurements are lacking; `peerway campaign run {folder}` tries them again"
        )


@command.command()
@_FOLDER
def status(folder: Path) -> None:
    """Show how far the campaign is, and when it will end."""
    _show_status(_plan(folder), Journal(folder))


@command.command()
@_FOLDER
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("campaign.html"), show_default=True
)
def report(folder: Path, out: Path) -> None:
    """Make a page of what FOLDER has: the cluster as a map, each test by node type, odd nodes by name."""
    from peerway.campaign.report import render
    from peerway.report.page import write

    try:
        page = render(_plan(folder), Journal(folder))
        write(out, page)
    except RecordError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"cannot write {out}: {error.strerror or error}; name another file with -o"
        ) from None
    say(f"{out}: {len(page.encode()) / 1e6:.1f} MB", err=True)


@command.command()
@click.argument("before", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("after", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME",
    help="What the upgrade was meant to change, as kernel or server_version.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Also a page, with all points.")
def compare(before: Path, after: Path, factors: tuple[str, ...], form: str, out: Path | None) -> None:
    """Compare two campaigns by node type, and say which differences may be due to the upgrade."""
    from peerway.cli.compare_node_types import show_node_types

    sides = (_records(before), _records(after))
    # Two campaigns have two names, which is no change of the cluster.
    show_node_types(*sides, (before.name, after.name), (*factors, "campaign"), None, form, out)


def _plan(folder: Path) -> plans.Plan:
    try:
        return plans.read(folder / plans.NAME)
    except plans.BadPlan as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise BadInput(
            f"{folder} has no campaign: {plans.NAME}: {error.strerror}; "
            f"`peerway campaign init {folder}` makes one"
        ) from None


def _records(folder: Path) -> list[Record]:
    try:
        found = Journal(folder).records()
    except RecordError as error:
        raise BadInput(str(error)) from None
    if not found:
        raise BadInput(f"{folder} has no results; `peerway campaign run {folder}` makes them")
    return found


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (Busy, Changed) as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise click.ClickException(
            f"cannot write {error.filename or 'the journal'}: {error.strerror}"
        ) from None


def _run(plan: plans.Plan, journal: Journal) -> Left:
    from peerway.campaign.run import Runner
    from peerway.campaign.starters import starter

    try:
        with _told(), ended_by_signals(), journal.held():
            journal.begin(plan.text)
            return Runner(plan, journal, starter(plan, journal), lambda line: say(line, err=True)).run()
    except Ended as end:
        say(
            f"ended by {end.name}; measurements that run go on, and "
            f"`peerway campaign run {journal.folder}` goes on from there",
            err=True,
        )
        raise Exit(end.code) from None


def _show_status(plan: plans.Plan, journal: Journal) -> None:
    from peerway.campaign.status import status as status_of

    for line in status_of(plan, journal).lines():
        say(line)


def _health(folder: Path, plan: plans.Plan) -> int:
    """One round in a folder of its own; a line a node."""
    from peerway.campaign.outliers import cells

    place = folder / f"{datetime.now(UTC):health-%Y%m%dT%H%M%S.%f}"
    place.mkdir()
    plan = replace(
        plan,
        repeats=1,
        tries=1,
        time_s=min(plan.time_s, _HEALTH_S / len(plan.tests)),
        nodes_at_once=max(plan.nodes_at_once, 1),
    )
    journal = Journal(place)
    left = _run(plan, journal)
    found = cells(journal.records())
    bad = 0
    for node, kind in plan.type_of().items():
        own = [cell for cell in found if cell.node == node]
        failed = [
            f"{name.split('.')[1]}: {why}" for name, why in left.given_up.items() if name.endswith(f".{node}")
        ]
        odd = [
            f"{c.test} {c.metric.text(c.value)}, its type {c.metric.text(c.of_type)}" for c in own if c.odd
        ]
        bad += bool(failed or odd or not own)
        verdict = "failed" if failed or not own else "odd" if odd else "ok"
        shown = failed + odd or [f"{c.test} {c.metric.text(c.value)}" for c in own[:3]]
        say(f"{node} {verdict} ({kind}): {'; '.join(shown) or 'no records'}")
    return 1 if bad else 0
