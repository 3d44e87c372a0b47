"""`peerway jobs user`: people who may log in, and tokens."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from peerway.jobs.places import data_option, monitor_at
from peerway.terminal import say


@click.command()
@click.argument("name")
@click.option("--admin", is_flag=True, help="The person sees and changes everything.")
@click.option(
    "--manages",
    multiple=True,
    metavar="ACCOUNT",
    help="The person sees all jobs of this account; may be repeated.",
)
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input, not from the terminal."
)
@click.option("--no-password", is_flag=True, help="The person logs in only through OIDC or a portal.")
@data_option
def command(
    name: str,
    admin: bool,
    manages: tuple[str, ...],
    password_stdin: bool,
    no_password: bool,
    data: Path,
) -> None:
    """Add a person, or change one: role, accounts and password."""
    from peerway.jobs.serve.people import People

    password = ""
    if password_stdin and no_password:
        raise click.UsageError("--password-stdin gives a password, and --no-password means none")
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not no_password:
        if not sys.stdin.isatty():
            raise click.ClickException(
                "there is no terminal to ask for the password at: give it with --password-stdin, or give "
                "--no-password"
            )
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    with monitor_at(data, make=True) as monitor:
        people = People(monitor.jobs)
        try:
            people.put(name, "admin" if admin else "user", list(manages))
            if not no_password:
                people.set_password(name, password)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    say(f"{name}: {'administrator' if admin else 'user'}", err=True)
