"""`peerway jobs user`: adds or changes people who may log in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.printable import printable
from peerway_common.terminal import say
from peerway_jobs.server_folder import check_folder, data_option, monitor_at

if TYPE_CHECKING:
    from peerway_jobs.serve.people import Person

_ROLES = {"admin": "an administrator", "user": "a user"}


@click.command()
@click.argument("name")
@click.option(
    "--admin/--no-admin",
    default=None,
    help="Grant or revoke administrator rights  [default: unchanged; a new person has none]",
)
@click.option(
    "--manages",
    multiple=True,
    metavar="ACCOUNT",
    help="The person sees all jobs of this account; may be repeated. Replaces the accounts named before.",
)
@click.option("--no-manages", is_flag=True, help="The person manages no account.")
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input, not from the terminal."
)
@click.option(
    "--no-password",
    is_flag=True,
    help="Set no password: an existing one is kept; a new person logs in through OIDC or a portal.",
)
@click.option("--delete", is_flag=True, help="Delete the person, their sessions and tokens; their jobs stay.")
@data_option
def command(
    name: str,
    admin: bool | None,
    manages: tuple[str, ...],
    no_manages: bool,
    password_stdin: bool,
    no_password: bool,
    delete: bool,
    data: Path,
) -> None:
    """Add a person, or change one: role, accounts and password. What is not named stays.

    The password is asked for if the person is new, or if no other option is given.
    """
    from peerway_jobs.serve.people import People, check_password
    from peerway_jobs.store.audit import HERE, note, operator

    if password_stdin and no_password:
        raise click.UsageError("--password-stdin gives a password, and --no-password means none")
    if delete:
        if admin is not None or manages or no_manages or password_stdin or no_password:
            raise click.UsageError("--delete deletes a person; no other option belongs to it")
        _delete(name, data)
        return
    if manages and no_manages:
        raise click.UsageError("--manages names accounts, and --no-manages means none")
    check_folder(data, make=True)
    new = not (data / "jobs.db").exists() or not (data / "jobs.db").stat().st_size
    before = None if new else _before(data, name)
    changes = admin is not None or bool(manages) or no_manages
    password = (
        None if no_password or (before and changes and not password_stdin) else _password(password_stdin)
    )
    role = None if admin is None else "admin" if admin else "user"
    try:
        if password is not None:
            check_password(password)
        with monitor_at(data, make=True) as monitor:
            people = People(monitor.jobs)
            people.put(name, role, list(manages) if manages or no_manages else None)
            if password is not None:
                people.set_password(name, password)
            after = people.person(name)
            action = "person changed" if before else "person added"
            note(monitor.jobs, monitor.clock(), operator(), HERE, action, name)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    assert after is not None
    if new:
        say(f"made a new database in {data}", err=True)
    say(_summary_of(name, before, after, password is not None), err=True)


def _delete(name: str, data: Path) -> None:
    from peerway_jobs.serve.people import People
    from peerway_jobs.store.audit import HERE, note, operator

    with monitor_at(data) as monitor:
        if not People(monitor.jobs).delete(name):
            raise click.ClickException(f"there is nobody called {printable(name)!r} here")
        note(monitor.jobs, monitor.clock(), operator(), HERE, "person deleted", name)
    say(f"{printable(name)}: deleted, with sessions and tokens", err=True)


def _before(data: Path, name: str) -> Person | None:
    from peerway_jobs.serve.people import People

    with monitor_at(data) as monitor:
        return People(monitor.jobs).person(name)


def _password(from_input: bool) -> str:
    if from_input:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise click.ClickException(
            "there is no terminal to ask for the password at: give it with --password-stdin, or give "
            "--no-password"
        )
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


def _summary_of(name: str, before: Person | None, after: Person, new_password: bool) -> str:
    """A line that says what the person is now, and what has changed."""
    changed = []
    if before is None:
        changed.append(f"added, {'with' if after.has_password else 'without'} a password")
    else:
        if before.role != after.role:
            changed.append(f"was {_ROLES[before.role]} before")
        if before.accounts != after.accounts:
            changed.append(f"managed {_list(before.accounts) or 'no account'} before")
        if new_password:
            changed.append("new password")
    role = "administrator" if after.role == "admin" else "user"
    manages = f", manages {_list(after.accounts)}" if after.accounts else ""
    return f"{printable(name)}: {role}{manages} ({'; '.join(changed) or 'nothing changed'})"


def _list(accounts: tuple[str, ...]) -> str:
    return printable(", ".join(accounts))
