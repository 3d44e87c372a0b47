"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from peerway_common.cli.options import Decorated, parsed
from peerway_common.terminal import say
from peerway_measure.bench import conditions
from peerway_measure.bench.time_budget import parse_time
from peerway_measure.file_kinds import has_records
from peerway_measure.memories import MEMORIES


def memories(text: str) -> list[tuple[str, str]]:
    """Read "host,cuda,host-cuda": pairs of memories to measure, source first."""
    pairs = []
    for part in text.split(","):
        source, dash, target = part.partition("-")
        for name in (source, target) if dash else (source,):
            if name not in MEMORIES:
                raise ValueError(
                    f"'{name}' is not a memory to measure; there are {', '.join(MEMORIES)}, "
                    "or two such as host-cuda"
                )
        pairs.append((source, target if dash else source))
    return list(dict.fromkeys(pairs))


def memories_option(example: str) -> Callable[[Decorated], Decorated]:
    """The option --device for the memories to measure. Its help shows the `example`."""
    return click.option(
        "--device", "memories", callback=parsed(memories), metavar="LIST",
        help=f"Memory: {example}, or a pair such as host-cuda  [default: all of this machine]",
    )  # fmt: skip


def time_option() -> Callable[[Decorated], Decorated]:
    """The option --time, the seconds that a measurement may take."""
    return click.option(
        "--time", "time_s", callback=parsed(parse_time), metavar="TIME",
        help="Time budget for all cases, such as 90s, 5m or 1h. If it is too short, each test gets a share, "
        "measures sizes from its whole range, and skipped sizes are reported  [default: no limit]",
    )  # fmt: skip


def ends_after(time_s: float | None) -> float:
    """When that time will be over, in seconds since 1970; 0 if no time was given."""
    return time.time() + time_s if time_s else 0


def tell_conditions(workers: int, noun: str = "ranks") -> None:
    """Print, before anything is measured, what will disturb the measurement."""
    if warnings := conditions.warnings_for(conditions.read(), workers, noun):
        say(f"this host: {'; '.join(warnings)}", err=True)


def table_option(use: str) -> Callable[[Decorated], Decorated]:
    """The option --table, a route table to read instead of this machine's. Its help says the
    purpose, `use`.
    """
    return click.option(
        "--table", "routes", type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_no_records, help=f"{use}  [default: this machine's]",
    )  # fmt: skip


def _no_records(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a file of records where a route table is expected."""
    if value is not None and has_records(value):
        raise click.BadParameter(
            f"{value} has records, and is not a route table; `peerway report` and `peerway compare` show "
            "records, `peerway tune` makes a table", ctx, parameter,
        )  # fmt: skip
    return value


def table_environment(routes: Path | None) -> dict[str, str]:
    """The environment variables with which the ranks read this table."""
    return {"PEERWAY_ROUTES": str(routes.resolve())} if routes else {}


def need_devices(names: Iterable[str]) -> None:
    """Refuse a device ("cuda", "cuda:1") that does not exist here, before anything starts."""
    from peerway import _core

    available = [name for name, _ in _core.devices()]
    for name in names:
        kind, _, index = name.partition(":")
        if kind != "host" and f"{kind}:{index or 0}" not in available:
            reason = _core.why_none(kind)
            why = f" There is no {kind} because {reason}." if reason else ""
            raise click.ClickException(
                f"there is no device {name} here. This machine has: {', '.join(available)}.{why} "
                "`peerway doctor` says more."
            )
