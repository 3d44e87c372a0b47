"""`peerway nic-check`: whether a network card's plugin keeps the laws of nic.h and what it promises."""

from __future__ import annotations

import faulthandler
import secrets
import socket
import subprocess
import sys

import click
from rich.text import Text

from peerway.cli.output import table_console

LAW_WIDTH = 32
STYLES = {"RIGHT": ("ok", "green"), "WRONG": ("wrong", "bold red"), "ABSENT": ("absent", "dim")}


@click.command("nic-check")
@click.argument("plugin", metavar="PLUGIN[?OPTIONS]")
@click.option("--far-end", type=int, hidden=True)
@click.option("--job", type=int, hidden=True)
def command(plugin: str, far_end: int | None, job: int | None) -> None:
    """Load PLUGIN in two processes and look whether it keeps the laws of nic.h and its own promises.

    Each line is one law: ok; wrong, with what was seen and what to do; absent (an optional entry that the
    plugin does not have). The exit code is 1 if one is wrong. It takes a few seconds.

    PLUGIN is a file, or the name of one that comes with Peerway; OPTIONS is what the plugin is told.
    """
    from peerway import _core

    faulthandler.enable()  # a plugin that crashes ends this process: tell where
    card = _core.nic_card(plugin, "nic-check")
    if far_end is not None and job is not None:
        _core.nic_far_end(card.file, job, far_end)
        return
    console = table_console()
    outcomes: list[str] = []

    def tell(verdict: _core.NicVerdict) -> None:
        outcome = verdict.outcome.name
        outcomes.append(outcome)
        word, style = STYLES[outcome]
        line = Text.assemble((f"{word:<8}", style), f"{verdict.law:<{LAW_WIDTH}}", verdict.found)
        console.print(line, soft_wrap=True)

    near, far = socket.socketpair()
    job = secrets.randbits(63)
    child = [
        sys.executable,
        "-m",
        "peerway",
        "nic-check",
        card.file,
        "--far-end",
        str(far.fileno()),
        "--job",
        str(job),
    ]
    with near, subprocess.Popen(child, pass_fds=[far.fileno()]) as process:
        far.close()

        def kill_far_end() -> None:
            process.kill()
            process.wait()

        try:
            _core.nic_check(card.file, job, card.options, near.fileno(), kill_far_end, tell)
        finally:
            near.close()
            process.kill()
    wrong = outcomes.count("WRONG")
    absent = outcomes.count("ABSENT")
    console.print(f"{outcomes.count('RIGHT')} ok, {wrong} wrong, {absent} absent: {plugin}", soft_wrap=True)
    if wrong:
        sys.exit(1)
