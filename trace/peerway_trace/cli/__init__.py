"""`peerway trace`: record a program, and read traces. Each verb is a file of this folder."""

from __future__ import annotations

import shutil

import click

from peerway_common.cli.verbs import Verbs, in_package
from peerway_common.suggestion import did_you_mean

VERBS = {
    "record": "Run a command and record it; short form: peerway trace -- COMMAND.",
    "start": "Switch recording on in a running job.",
    "stop": "Switch recording off in a running job.",
    "report": "Show the findings of a trace: lost time, messages, bursts, rates.",
    "compare": "Show which operations became faster or slower between two traces.",
    "shares": "Write which share of the time transfers take, for `peerway worth`.",
    "export": "Write a trace for Perfetto, or as OTF2 for Vampir and Scalasca.",
    "collect": "Make a trace from the recordings of a job whose `peerway trace` was killed.",
}


class _TraceVerbs(Verbs):
    """Verbs of which `record` may be left out: arguments that begin with no verb are a command to record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `record` in front if there is no verb."""
        if args and args[0] not in (*self.verbs, "-h", "--help") and not self._misspelt(args[0]):
            args = ["record", *args]
        return super().parse_args(ctx, args)

    def _misspelt(self, word: str) -> bool:
        """Whether it looks like a misspelt verb, and is not a program: `peerway trace reprot folder`."""
        return shutil.which(word) is None and did_you_mean(word, self.verbs) != ""


@click.command("trace", cls=_TraceVerbs, verbs=in_package(__name__, VERBS))
def command() -> None:
    """Record every operation of a program's ranks, and find where time is lost."""
