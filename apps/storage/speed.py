"""How fast `peerway storage` and `peerway campaign` themselves are: the engine posix beside fio
(engine_speed.py), what a campaign adds to its measurements (campaign_cost.py), and the page of 100,000
records (page_speed.py). Each prints a record, with its command and the load of the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from campaign_cost import campaign
from engine_speed import engines
from page_speed import page

from peerway_common.cli.numbers import Number
from peerway_measure.bench import machine
from peerway_measure.bench.host_state import host_state
from peerway_measure.records import now


@click.command()
@click.argument("what", type=click.Choice(["engines", "campaign", "page"]))
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path())
@click.option("--size", default=1 << 30, show_default=True, help="engines: bytes of the file.")
@click.option("--rounds", default=10, show_default=True, help="engines: of each engine.")
@click.option(
    "--minutes", type=Number(0, 1e4), default=60.0, show_default=True, help="engines: begin no round later."
)
@click.option(
    "--mode", type=click.Choice(["buffered", "fsync", "direct"]), default="buffered", show_default=True
)
@click.option("--nodes", default=46, show_default=True, help="campaign: virtual nodes.")
@click.option("--at-once", default=4, show_default=True, help="campaign: nodes at the same time.")
@click.option("--repeats", default=25, show_default=True, help="campaign: rounds.")
@click.option("--campaigns", default=1, show_default=True, help="campaign: one after the other.")
@click.option("--records", "count", default=100_000, show_default=True, help="page: records.")
def main(name: str, folder: Path, **options: Any) -> None:
    """Measure one of them, and print its record."""
    before = host_state()
    measures: dict[str, Callable[..., dict[str, Any]]] = {
        "engines": engines,
        "campaign": campaign,
        "page": page,
    }
    measured = measures[name](folder.absolute(), **options)
    program = machine.recorded_command(["python", "apps/storage/speed.py", *sys.argv[1:]], {folder: "FOLDER"})
    line = {
        "test": f"storage_{name}",
        **measured,
        "load_before": before["load"],
        "cpus": os.cpu_count(),
        "time": now(),
        "command": program,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
