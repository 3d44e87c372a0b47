"""`peerway jobs agent`: measures this node's jobs and sends the measurements."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from peerway_common import disk_space
from peerway_common.printable import printable
from peerway_jobs.lock_file import locked

SETTINGS = Path("/etc/peerway/jobs-agent.toml")


def settings_option(function: click.decorators.FC) -> click.decorators.FC:
    """Add the option --settings (the agent's file) to a command."""
    return click.option(
        "--settings", "file", type=click.Path(dir_okay=False, path_type=Path), default=SETTINGS,
        show_default=True, help="The agent's settings.",
    )(function)  # fmt: skip


@click.command("agent")
@settings_option
def command(file: Path) -> None:
    """Measure the jobs of this node every 10 s and send the measurements to the server.

    The agent keeps them in a spool on disk until the server has them. SIGTERM ends the agent; even kill -9
    loses no measurement.
    """
    from peerway_jobs.agent import privileges, settings

    try:
        chosen = settings.read(file)
        if chosen.server:
            settings.read_token(Path(chosen.token_file))
    except settings.BadSettings as error:
        raise click.ClickException(str(error)) from None
    why_not = privileges.drop()

    from peerway_jobs.agent.loop import Agent

    def tell(text: str) -> None:
        print(f"peerway jobs agent: {printable(text)}", file=sys.stderr, flush=True)

    if why_not:
        tell(why_not)
    with locked(Path(chosen.state), "agent", 0o755):
        try:
            agent = Agent(chosen, tell)
        except OSError as error:
            path = Path(error.filename or chosen.state)
            reason = f"{path}: {disk_space.why(path, error)}" if error.strerror else str(error)
            raise click.ClickException(f"the agent cannot start: {reason}") from None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.stop())
        agent.run()
