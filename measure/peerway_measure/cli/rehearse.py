"""`peerway rehearse`: a small copy of a cluster on this machine, to rehearse an upgrade on."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from peerway_common.cli.options import BadInput
from peerway_common.cli.verbs import VerbGroup
from peerway_common.printable import shell_word
from peerway_common.terminal import say

if TYPE_CHECKING:
    from peerway_measure.rehearse.cluster.description import Description

_FOLDER = click.argument(
    "folder", type=click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True)
)


@click.group(cls=VerbGroup)
def command() -> None:
    """Rehearse an upgrade on a copy of a cluster: real Slurm and file servers, in namespaces here."""


@command.command(short_help="Start the copy that FOLDER describes.")
@_FOLDER
def start(folder: Path) -> None:
    """Start the copy that FOLDER/cluster.toml describes, or start it again as it was when it stopped."""
    from peerway_measure.rehearse import holder
    from peerway_measure.rehearse.cluster import check_folder, why_not
    from peerway_measure.rehearse.cluster.description import BadDescription

    description = _description(folder)
    try:
        check_folder(folder)
    except BadDescription as error:
        raise BadInput(str(error)) from None
    if why := why_not(description):
        raise click.ClickException(why)
    if (folder / holder.SOCKET).exists():
        try:
            list(holder.ask(folder, verb="status"))
            raise BadInput(f"the copy in {folder} runs already")
        except holder.Gone:
            pass
    try:
        holder.start(folder)
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    _request(folder, verb="status")
    say(f"`peerway rehearse shell {shell_word(folder)}` opens a shell of {description.users[0]} on the head")


@command.command()
@_FOLDER
def status(folder: Path) -> None:
    """Show the copy's hosts and snapshots."""
    _request(folder, verb="status")


@command.command(context_settings={"ignore_unknown_options": True})
@_FOLDER
@click.option(
    "--host", default="head", show_default=True, metavar="NAME", help="A node, a file server, or the head."
)
@click.option(
    "--user",
    default=None,
    metavar="NAME",
    help="A user of the copy  [default: the first; on a file server root]",
)
@click.option("--root", "as_root", is_flag=True, help="Open the shell as root.")
@click.argument("words", nargs=-1)
def shell(folder: Path, host: str, user: str | None, as_root: bool, words: tuple[str, ...]) -> None:
    """Open a shell on a host of the copy, or run WORDS there."""
    description = _description(folder)
    if user is not None and user not in description.users:
        raise BadInput(f"the copy has no user {user}; there are {', '.join(description.users)}")
    servers = [each.host for each in description.file_systems]
    account = None if as_root or (host in servers and user is None) else user or description.users[0]
    answer = _answer(
        folder, verb="enter", host=host, user=account, command=words, term=os.environ.get("TERM", "dumb")
    )
    argv = json.loads(answer[0])
    os.chdir("/")
    os.execvp(argv[0], argv)


@command.command()
@_FOLDER
@click.argument("name")
def snapshot(folder: Path, name: str) -> None:
    """Save the copy's whole disk under NAME. This stops all hosts and starts them again."""
    _request(folder, verb="snapshot", name=name)


@command.command(short_help="Restore the snapshot NAME.")
@_FOLDER
@click.argument("name")
def rollback(folder: Path, name: str) -> None:
    """Restore the snapshot NAME: files, packages, configuration, Slurm's state."""
    _request(folder, verb="rollback", name=name)


@command.command()
@_FOLDER
@click.argument("scenario", type=click.Path(path_type=Path, dir_okay=False, exists=True, resolve_path=True))
def upgrade(folder: Path, scenario: Path) -> None:
    """Run the steps of SCENARIO on the copy. If a step or check fails, roll back and exit with status 1."""
    _request(folder, verb="upgrade", scenario=str(scenario))


@command.command()
@_FOLDER
def stop(folder: Path) -> None:
    """Stop all hosts. The disk stays for the next start."""
    _request(folder, verb="stop")


@command.command()
@_FOLDER
def remove(folder: Path) -> None:
    """Stop all hosts and delete the disk. The description and the results of upgrades stay."""
    from peerway_measure.rehearse import holder
    from peerway_measure.rehearse.copy import DESCRIPTION

    if not (folder / DESCRIPTION).exists():
        raise BadInput(_no_description(folder))
    with contextlib.suppress(holder.Gone):
        list(holder.ask(folder, verb="stop"))
    for name in ("disk.img", "disk.new", "log", holder.SOCKET):
        (folder / name).unlink(missing_ok=True)
    for name in ("disk", "root", "cluster"):  # mount points, empty outside of the copy
        if (folder / name).is_dir():
            if any((folder / name).iterdir()):
                raise click.ClickException(
                    f"{folder / name} is not empty, so it does not belong to a copy; it was not removed"
                )
            (folder / name).rmdir()


def _description(folder: Path) -> Description:
    from peerway_measure.rehearse.cluster import read
    from peerway_measure.rehearse.cluster.description import BadDescription
    from peerway_measure.rehearse.copy import DESCRIPTION

    try:
        return read(folder / DESCRIPTION)
    except FileNotFoundError:
        raise BadInput(_no_description(folder)) from None
    except (BadDescription, OSError) as error:
        raise BadInput(str(error)) from None


def _no_description(folder: Path) -> str:
    return (
        f"{folder} has no cluster.toml, the description of the cluster; "
        "start from the one in examples/rehearsal (docs/measure/rehearsal.md)"
    )


def _request(folder: Path, **request: Any) -> None:
    from peerway_measure.rehearse import holder

    status, wrong = None, ""
    try:
        for message in holder.ask(folder, **request):
            if "say" in message:
                say(message["say"])
            wrong = message.get("wrong", wrong)
            status = message.get("status", status)
    except holder.Gone as error:
        raise BadInput(str(error)) from None
    except KeyboardInterrupt:
        say(
            f"the copy goes on with it; `peerway rehearse status {shell_word(folder)}` shows the copy, and "
            f"{folder}/log what happened",
            err=True,
        )
        raise Exit(130) from None
    if wrong or status is None:
        raise click.ClickException(wrong or _ended(folder))
    if status:
        raise Exit(status)


def _answer(folder: Path, **request: Any) -> list[str]:
    from peerway_measure.rehearse import holder

    try:
        messages = list(holder.ask(folder, **request))
    except holder.Gone as error:
        raise BadInput(str(error)) from None
    for message in messages:
        if "wrong" in message:
            raise click.ClickException(message["wrong"])
    if not messages:
        raise click.ClickException(_ended(folder))
    return [message["say"] for message in messages if "say" in message]


def _ended(folder: Path) -> str:
    return f"the copy in {folder} ended meanwhile; {folder}/log says why"
