"""`peerway campaign`: measurements of a whole cluster over days."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from peerway_common.cli.options import BadInput
from peerway_common.cli.verbs import VerbGroup
from peerway_common.terminal import say
from peerway_common.units import about_text, counted
from peerway_measure.campaign import plan_file
from peerway_measure.campaign.journal import Journal, Unreadable
from peerway_measure.campaign.plan import Plan
from peerway_measure.cli.campaign_init import init
from peerway_measure.cli.campaign_pass import leave_errors, measure, run_of, tell
from peerway_measure.cli.output import cannot_write
from peerway_measure.records import RecordError

if TYPE_CHECKING:
    from peerway_measure.records import Record

_FOLDER = click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))


class Campaigns(VerbGroup):
    """The verbs: each reads the folder of a campaign."""

    def invoke(self, ctx: click.Context) -> object:
        """Turn a file of the campaign that cannot be read into an error, in one place for all verbs."""
        try:
            return super().invoke(ctx)
        except Unreadable as error:
            raise BadInput(str(error)) from None


@click.group(cls=Campaigns)
def command() -> None:
    """Measure a whole cluster over days. A campaign is a folder with a campaign.toml; it can be stopped and
    resumed at any time.
    """


command.add_command(init)


@command.command()
@_FOLDER
@click.option(
    "--health",
    is_flag=True,
    help="Measure one round, in under five minutes per node. The exit code is 1 if a node is odd.",
)
@click.option(
    "--node",
    metavar="NAME",
    help="With --health: measure this node alone, and compare it with FOLDER's results for its type.",
)
def run(folder: Path, health: bool, node: str | None) -> None:
    """Make the measurements that FOLDER still lacks. Stop at any time; the next run resumes."""
    plan = _plan(folder)
    if node is not None and not health:
        raise click.UsageError("--node needs --health: a campaign measures all nodes of its file")
    if health:
        from peerway_measure.cli.campaign_health import health_of_all, health_of_one

        raise Exit(health_of_one(folder, plan, node) if node else health_of_all(folder, plan))
    missing = measure(plan, Journal(folder))
    for line in missing.lines:
        tell(f"not measured: {line}")
    leave_errors()
    _show_status(plan, Journal(folder))
    if missing.why:
        raise click.ClickException(
            f"{counted(len(missing.why), 'measurement')} missing; {run_of(folder)} tries them again"
        )


@command.command(short_help="Show progress, failures and the expected end.")
@_FOLDER
def status(folder: Path) -> None:
    """Show how many measurements are done, and when the campaign will end."""
    _show_status(_plan(folder), Journal(folder))


@command.command(short_help="Write a page with the results.")
@_FOLDER
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("campaign.html"),
    show_default=True,
    help="The HTML page to write.",
)
def report(folder: Path, out: Path) -> None:
    """Write a page with FOLDER's results: the cluster as a map, each test by node type, odd nodes by name."""
    from peerway_measure.campaign.report import render
    from peerway_measure.report.page import write

    try:
        journal = Journal(folder)
        page = render(_plan(folder), journal)
        write(out, page)
    except RecordError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise cannot_write(out, error) from None
    if not journal.finished():
        say(
            "peerway: no measurement is finished yet, so the page has no results; "
            f"{run_of(folder)} measures", err=True,
        )  # fmt: skip
    say(f"{out}: {about_text(len(page.encode()))}", err=True)


@command.command(short_help="Compare two campaigns, or two values of a factor, by node type.")
@click.argument("before", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("after", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME",
    help="What the upgrade was meant to change, such as kernel or server_version; may be repeated. With "
    "values, as in block=1M:16M, BEFORE uses the first and AFTER the second; both may be the "
    "same campaign.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Also write an HTML page that plots all samples."
)
def compare(before: Path, after: Path, factors: tuple[str, ...], form: str, out: Path | None) -> None:
    """Compare two campaigns by node type, and say which differences may be due to the upgrade."""
    from peerway_measure.cli.compare_node_types import show_node_types
    from peerway_measure.cli.factors import check, chosen, parse
    from peerway_measure.compare.sides import sides_of

    parsed = parse(factors)
    both = records_of(before), records_of(after)
    check(parsed, (*both[0], *both[1]))
    sides = chosen(parsed, both, (before, after))
    if before.samefile(after) and not any(parsed.values()):
        say(
            f"peerway: both sides are the same campaign, {before}: nothing can differ; "
            "--factor NAME=VALUE:VALUE compares two values of a factor",
            err=True,
        )
    names = before.resolve().name, after.resolve().name
    # Two campaigns have different names, which is not a change of the cluster.
    show_node_types(*sides, names, sides_of(parsed), (*parsed, "campaign"), None, form, out)


def _plan(folder: Path) -> Plan:
    try:
        return plan_file.read(folder / plan_file.NAME)
    except plan_file.BadPlan as error:
        raise BadInput(str(error)) from None
    except FileNotFoundError:
        raise BadInput(
            f"{folder} has no campaign, which is a file {plan_file.NAME}; "
            f"`peerway campaign init {shlex.quote(str(folder))}` makes one"
        ) from None
    except OSError as error:
        raise BadInput(f"cannot read {folder / plan_file.NAME}: {error.strerror}") from None


def records_of(folder: Path) -> list[Record]:
    """The results of a campaign. Raises BadInput."""
    try:
        measured = Journal(folder).records()
    except RecordError as error:
        raise BadInput(str(error)) from None
    if not measured:
        raise BadInput(f"{folder} has no results; {run_of(folder)} makes them")
    return measured


def _show_status(plan: Plan, journal: Journal) -> None:
    from peerway_measure.campaign.slurm import away_lines_of
    from peerway_measure.campaign.status import status as status_of

    now = status_of(plan, journal)
    for line in now.lines():
        say(line)
    for line in away_lines_of(plan) if plan.starter == "slurm" and now.done < now.total else ():
        say(line)
