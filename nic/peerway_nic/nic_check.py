"""`peerway nic-check`: check that a NIC plugin does what nic.h requires and keeps its ordering guarantees."""

from __future__ import annotations

import secrets
import shlex
import sys

import click
from rich.text import Text

from peerway.errors import Error
from peerway_common.cli.numbers import Number, Whole
from peerway_common.cli.options import BadInput
from peerway_common.console import table_console
from peerway_common.suggestion import did_you_mean

WIDTH = 34
STYLES = {
    "OK": ("ok", "green"),
    "BROKEN": ("broken", "bold red"),
    "INCONCLUSIVE": ("unclear", "yellow"),
    "ABSENT": ("absent", "dim"),
}
BROKEN, INCONCLUSIVE = 1, 3  # exit codes


@click.command("nic-check")
@click.argument("plugin", metavar="PLUGIN[?OPTIONS]")
@click.option(
    "--minutes",
    type=Number(0, 7 * 24 * 60, min_open=True),
    metavar="N",
    help="Test for about this many minutes, to find rare faults  [default: a quarter of one]",
)
@click.option(
    "--seed",
    type=Whole(min=0),
    help="Repeat the random choices of the run that printed this seed  [default: a new one]",
)
@click.option("--test", "tests", metavar="NAME", multiple=True, help="Run only this test; may be repeated.")
def command(plugin: str, minutes: float | None, seed: int | None, tests: tuple[str, ...]) -> None:
    """Run the conformance tests of nic.h on PLUGIN, under load, in several processes that put, get and die.

    Each line is one test: ok, with how often it was exercised; broken, with the evidence and what to do;
    unclear, where the test could not exercise it; absent, where the plugin does not offer it. Ordering
    guarantees that the plugin states are tested, too. The exit code is 1 if a test is broken, else 3 if one
    is unclear, and 2 if PLUGIN is none that can be loaded. It takes about 15 seconds.

    PLUGIN is a file, or the name of one that comes with Peerway; OPTIONS are passed to it.
    """
    from peerway import _core

    for name in tests:
        if name not in (known := _core.nic_tests()):
            hint = did_you_mean(name, known) or "."
            raise click.UsageError(f"there is no test '{name}'{hint} There are: {'; '.join(known)}")
    try:
        nic = _core.nic_spec(plugin, "nic-check")
    except Error as error:
        raise BadInput(str(error)) from None
    console = table_console()
    outcomes: list[str] = []

    def tell(verdict: _core.NicVerdict) -> None:
        outcome = verdict.outcome.name
        outcomes.append(outcome)
        word, style = STYLES[outcome]
        line = Text.assemble((f"{word:<8}", style), f"{verdict.test:<{WIDTH}}", verdict.evidence)
        console.print(line, soft_wrap=True)

    seed = secrets.randbits(32) if seed is None else seed
    effort = 1.0 if minutes is None else minutes * 60 / _core.nic_usual_seconds()
    try:
        _core.nic_check(nic.file, nic.options, seed, effort, 2.0, list(tests), tell)
    except Error as error:  # the plugin cannot be loaded; its faults are verdicts, not errors
        raise BadInput(str(error)) from None
    counts = ", ".join(f"{outcomes.count(name)} {word}" for name, (word, _) in STYLES.items())
    console.print(f"{counts}: {plugin}", soft_wrap=True)
    status = BROKEN if "BROKEN" in outcomes else INCONCLUSIVE if "INCONCLUSIVE" in outcomes else 0
    if status != 0:
        length = "" if minutes is None else f" --minutes {minutes:g}"
        length += "".join(f" --test {shlex.quote(name)}" for name in tests)
        again = f"again: peerway nic-check {shlex.quote(plugin)} --seed {seed}{length}"
        console.print(again, soft_wrap=True, markup=False, highlight=False)
        sys.exit(status)
    console.print(f"seed {seed}", soft_wrap=True)
