"""`peerway tune`: measure every available path and write the route table."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from peerway.cli.hosts import Hosts, hosts_options
from peerway_common.cli.options import BadInput, names, parsed
from peerway_common.ending import Ended, ended_by_signals
from peerway_common.terminal import say
from peerway_measure.cli.options import (
    ends_after,
    memories_option,
    need_devices,
    tell_conditions,
    time_option,
)
from peerway_measure.cli.output import cannot_write, ensure_replaceable, write_directly
from peerway_measure.record_output import STANDARD


@click.command()
@click.option("--quick", is_flag=True, help="Few sizes and short loops: less than a minute.")
@time_option()
@hosts_options
@memories_option("host, cuda, hip")
@click.option(
    "--paths",
    callback=parsed(names),
    metavar="LIST",
    help="Measure these paths only, as if there were no others  [default: all]",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the table; - is standard output  [default: where every context finds "
    "this machine's]",
)
def command(
    quick: bool,
    time_s: float | None,
    hosts: Hosts,
    memories: list[tuple[str, str]] | None,
    paths: list[str] | None,
    out: Path | None,
) -> None:
    """Measure every path per operation, shape, size and pair of memories, and write the route table.

    With two --hosts, only pairs of memories between them are measured; the rest of the table stays.

    Contexts that start afterwards use the table. `peerway explain` shows it.
    """
    from peerway import _core
    from peerway_measure.bench import machine, progress
    from peerway_measure.bench.session import PlanRefused, SessionFailed
    from peerway_measure.tune import merged
    from peerway_measure.tune.run import RANKS, Tuner

    hosts = hosts.pair()
    need_devices(name for pair in memories or () for name in pair)
    file = out or _default_file()
    ensure_replaceable(file)
    before = _before(file, named=out is not None)
    ends = ends_after(time_s)
    try:
        with ended_by_signals():
            if not hosts.named:  # the conditions of other hosts are not known
                tell_conditions(RANKS)
            with progress.shown("tuning", ends) as step:
                tuner = Tuner(
                    memories or machine.memory_pairs(), paths or (), quick, step, ends, hosts.words()
                )
                text = tuner.run()
            if hosts.named and before:
                text = _core.table_text(json.dumps(merged.with_pairs_of(before, json.loads(text))))
    except PlanRefused as error:
        raise BadInput(str(error)) from None
    except SessionFailed as error:
        raise click.ClickException(str(error)) from None
    except Ended as end:
        with suppress(OSError):
            say(f"peerway: ended by {end.name}; {file} is as it was", err=True)
        raise Exit(end.code) from None
    if not write_directly(file, text):
        _core.save_table(text, str(file))
    _tell(json.loads(text), before, file, tuner.results.notes)


def _default_file() -> Path:
    """The file in which every context looks for this machine's table. Its folder is created."""
    from peerway import _core

    file = Path(_core.default_table_file())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(file, error) from None
    return file


def _tell(table: dict[str, Any], before: dict[str, Any] | None, file: Path, notes: list[str]) -> None:
    """Say what changed and where the table is; on standard error if the table itself goes to
    standard output.
    """
    from peerway_measure.tune import changes

    aside = file == STANDARD
    for line in changes.lines(before, table):
        say(line, err=aside)
    for note in notes:
        say(f"note: {note}", err=True)
    summary = f"{len(table['costs'])} cost lines and {len(table['splits'])} splits"
    say(summary if aside else f"{summary} in {file}; `peerway explain` shows what they decide", err=aside)


def _before(file: Path, named: bool) -> dict[str, Any] | None:
    """The table that will be replaced; None if there is none that can be read. If the user named the file and
    it is not a table, it is not replaced.
    """
    from peerway import _core
    from peerway.errors import BadTable

    if file == STANDARD or not file.is_file() or not file.stat().st_size:
        return None
    try:
        table = json.loads(_core.load_table(str(file)))
    except BadTable as error:
        if named:
            problem = str(error).rpartition("; ")[0]  # without its other advice, to run tune
            raise BadInput(
                f"{problem}. tune replaces route tables only: name another file with --out, or remove "
                "this one"
            ) from None
        say(f"the table before cannot be read and is replaced: {error}", err=True)
        return None
    assert isinstance(table, dict)
    return table
