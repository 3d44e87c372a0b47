"""`peerway jobs token`: a token for an agent's node or for a program."""

from __future__ import annotations

import time
from pathlib import Path

import click

from peerway.jobs.places import data_option, monitor_at
from peerway.terminal import say


@click.command()
@click.option("--node", help="For the agent of this node.")
@click.option("--user", help="For a program that reads in this person's name.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["jobs:read", "cluster:read", "admin"]),
    help="What it may; may be repeated  [default: jobs:read, cluster:read]",
)
@click.option(
    "--days", type=click.FloatRange(0, min_open=True), help="How long it is valid  [default: for ever]"
)
@data_option
def command(
    node: str | None, user: str | None, scopes: tuple[str, ...], days: float | None, data: Path
) -> None:
    """Make a token and print it; it is not kept and cannot be shown again."""
    from peerway.jobs.batch_check import is_node_name
    from peerway.jobs.serve.people import People

    if bool(node) == bool(user):
        raise click.UsageError("a token is for --node NAME or for --user NAME")
    if node and not is_node_name(node):
        raise click.ClickException(f"{node!r} may not be the name of a node")
    wanted = ["agent"] if node else list(scopes or ("jobs:read", "cluster:read"))
    with monitor_at(data, make=True) as monitor:
        token = People(monitor.jobs).make_token(user or "", wanted, time.time(), node or "", days)
    say(token)
