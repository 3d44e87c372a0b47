"""`peerway tune`: measure every available path and write the route table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from peerway.cli.options import memories_option, names, need_devices, parsed
from peerway.cli.output import ensure_writable
from peerway.terminal import say


@click.command()
@click.option("--quick", is_flag=True, help="Few sizes and short loops: less than a minute.")
@memories_option("host, cuda")
@click.option(
    "--paths",
    callback=parsed(names),
    metavar="LIST",
    help="The only paths to measure, as if there were no others  [default: all there are]",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the table  [default: where every context looks for this machine's]",
)
def command(
    quick: bool, memories: list[tuple[str, str]] | None, paths: list[str] | None, out: Path | None
) -> None:
    """Measure every path per operation, shape, size and pair of memories, and write the route table.

    Contexts that start afterwards choose by it. `peerway explain` shows it.
    """
    from peerway import _core
    from peerway.bench import machine, progress
    from peerway.bench.session import PlanRefused, SessionFailed
    from peerway.tune import changes
    from peerway.tune.run import Tuner

    need_devices(name for pair in memories or () for name in pair)
    file = out or Path(_core.default_table_file())
    ensure_writable(file)
    before = _before(file)
    try:
        with progress.shown("tuning") as step:
            tuner = Tuner(memories or machine.memory_pairs(), paths or (), quick, step)
            text = tuner.run()
    except (PlanRefused, SessionFailed) as error:
        raise click.ClickException(str(error)) from None
    _core.save_table(text, str(file))
    for line in changes.told(before, json.loads(text)):
        say(line)
    for note in tuner.results.notes:
        say(f"note: {note}", err=True)
    table = json.loads(text)
    what = f"{len(table['costs'])} cost lines and {len(table['splits'])} splits"
    say(f"{what} in {file}; `peerway explain` shows what they decide")


def _before(file: Path) -> dict[str, Any] | None:
    """The table that will be replaced; none when there is none that can be read."""
    from peerway import _core
    from peerway.errors import BadTable

    if not file.exists():
        return None
    try:
        found = json.loads(_core.load_table(str(file)))
    except BadTable as error:
        say(f"the table before cannot be read and is replaced: {error}", err=True)
        return None
    assert isinstance(found, dict)
    return found
