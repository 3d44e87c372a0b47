"""`peerway trace`: records a program and reads the record. Each of its verbs is a file of this folder."""

from __future__ import annotations

import click

from peerway.cli.verbs import Verbs

VERBS = {
    "record": "Run a command and record it; the word may be left out: peerway trace -- COMMAND.",
    "report": "Show what a trace says: lost time, messages, bursts, rates.",
    "compare": "Tell which operations became faster or slower from one trace to another.",
    "export": "Write a trace for Perfetto, or as OTF2 for Vampir and Scalasca.",
    "collect": "Make a trace of what a job left whose `peerway trace` was ended.",
}


class _TraceVerbs(Verbs):
    """What begins with no verb is a command to record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the verb in front."""
        if args and args[0] not in (*self.verbs, "-h", "--help"):
            args = ["record", *args]
        return super().parse_args(ctx, args)


@click.command("trace", cls=_TraceVerbs, package=__name__, verbs=VERBS)
def command() -> None:
    """Record every message of a program, and judge it."""
