"""`peerway jobs token`: makes a token for a node's agent or for a program."""

from __future__ import annotations

import time
from pathlib import Path

import click

from peerway_common.cli.numbers import Number
from peerway_common.printable import printable
from peerway_common.terminal import say
from peerway_jobs.serve.people import MOST_DAYS, People
from peerway_jobs.server_folder import data_option, monitor_at
from peerway_jobs.store.audit import HERE, note, operator


@click.command()
@click.option("--node", metavar="NAME", help="Make a token for the agent of this node.")
@click.option(
    "--user", metavar="NAME", help="Make a token for a program that reads on behalf of this person."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["jobs:read", "cluster:read", "admin"]),
    help="With --user: what the token allows, in place of the default; may be repeated  "
    "[default: jobs:read, cluster:read]",
)
@click.option(
    "--days",
    type=Number(0, MOST_DAYS, min_open=True),
    metavar="N",
    help=f"How many days the token is valid, at most {MOST_DAYS}  [default: for ever]",
)
@click.option("--revoke", is_flag=True, help="Make no token; revoke all tokens of the node or person.")
@data_option
def command(
    node: str | None, user: str | None, scopes: tuple[str, ...], days: float | None, revoke: bool, data: Path
) -> None:
    """Make a token and print it. The server keeps only its hash, so it cannot show the token again."""
    from peerway_jobs.batch_check import is_node_name

    if bool(node) == bool(user):
        raise click.UsageError("say whom the token is for: either --node NAME or --user NAME")
    if node and not is_node_name(node):
        raise click.ClickException(
            f"{node!r} cannot be the name of a node: use letters, digits, '.', '-' and '_'"
        )
    if node and scopes:
        raise click.UsageError("--scope is for --user: the token of a node allows its agent to send, no more")
    if revoke:
        if scopes or days:
            raise click.UsageError("--revoke revokes all tokens; --scope and --days belong to a new one")
        with monitor_at(data) as monitor:
            count = People(monitor.jobs).revoke_all(user or "", node or "")
            if count:
                note(monitor.jobs, time.time(), operator(), HERE, "token revoked", f"{node or user}: all")
        if not count:
            raise click.ClickException(f"{node or user} has no token here")
        say(f"{count} token{'s' if count > 1 else ''} of {node or user} revoked")
        return
    wanted = ["agent"] if node else list(scopes or ("jobs:read", "cluster:read"))
    with monitor_at(data) as monitor:
        people = People(monitor.jobs)
        if user and people.person(user) is None:
            name = printable(user)
            say(
                f"{name!r} was not added here: the token sees what somebody of this name sees who comes by "
                f"a portal or OpenID Connect. For a local account add one with `peerway jobs user {name}`",
                err=True,
            )
        token = people.make_token(user or "", wanted, time.time(), node or "", days)
        detail = f"{node or user}: {' '.join(wanted)}"
        note(monitor.jobs, time.time(), operator(), HERE, "token made", detail)
    say(token)
