"""The same MPI program over UCX's own transports and over the torus NIC: latency and bandwidth by size.

    python apps/mpi/compare.py --out out/mpi

Writes records.jsonl and compare.html. `--keep results/cpu-2-mpi` also makes docs/nic/mpi-compared.md and its
plots anew from what was measured. The transports are run in turn, several times, so that what disturbs the
machine disturbs all of them.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import curves
from hosts import Network, NoHosts, network
from transports import TRANSPORTS, Failed, Mpi, Transport

from peerway.launch.mpi import MpiError
from peerway_measure import records
from peerway_measure.bench import machine

K, M = 1 << 10, 1 << 20
LATENCY_SIZES = tuple(1 << power for power in range(13))  # 1 B to 4 KiB
BANDWIDTH_SIZES = tuple(1 << power for power in range(10, 23, 2))  # 1 KiB to 4 MiB
FRESH_SIZES = (64 * K, M, 4 * M)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "nic" / "mpi-compared.md"
NAMES = tuple(transport.name for transport in TRANSPORTS)


@contextmanager
def _hosts(chosen: list[Transport]) -> Iterator[Network | None]:
    if not any(transport.between_hosts for transport in chosen):
        yield None
        return
    with network(2) as hosts:
        yield hosts


def _measured(mpi: Mpi, transport: Transport, hosts: Network | None, quick: bool) -> Iterator[records.Record]:
    """One round with one transport: a record for each size."""
    known = machine.known()
    about: dict[str, object] = {"load": round(os.getloadavg()[0], 2), **mpi.ask_ucx(transport, hosts)}
    for test, sizes, count in (
        ("latency", LATENCY_SIZES, 200 if quick else 5000),
        ("bandwidth", BANDWIDTH_SIZES, 3 if quick else 50),
        ("fresh", FRESH_SIZES, 3 if quick else 50),
    ):
        text = ",".join(map(str, sizes))
        for result in mpi.measure(transport, test, text, count, hosts):
            yield _record(result, transport, {**known, "command": _command(transport, mpi)}, about)


def _command(transport: Transport, mpi: Mpi) -> str:
    """The command that measures this transport alone."""
    words = [
        "python",
        "apps/mpi/compare.py",
        "--transport",
        transport.name,
        "--mpirun",
        Path(mpi.launcher.path).name,
    ]
    return shlex.join(words)


def _record(
    result: dict[str, object], transport: Transport, known: dict[str, str], about: dict[str, object]
) -> records.Record:
    def number(name: str) -> float:
        return float(str(result[name]))

    size, p50 = int(number("bytes")), number("p50_us")
    return records.Record(
        test=str(result["test"]),
        via=transport.name,
        op="send",
        shape="contiguous",
        bytes=size,
        ranks=2,
        source="host",
        target="host",
        iterations=int(number("iterations")),
        p50_us=p50,
        p99_us=number("p99_us"),
        min_us=number("min_us"),
        mean_us=number("mean_us"),
        bandwidth_MBps=round(size / p50, 3),
        messages_per_s=round(1e6 / p50, 1),
        validated=result["wrong"] == 0,
        cpu_percent=None,
        time=records.now(),
        extra={**about, "messages": int(number("messages"))},
        **known,
    )


@click.command()
@click.option("--transport", "names", type=click.Choice(NAMES), multiple=True, help="Only these transports.")
@click.option("--mpirun", default="mpirun.openmpi", show_default=True, help="The launcher of an MPI,")
@click.option("--mpicc", help="and its compiler; default: of the same ending.")
@click.option(
    "--rounds", type=click.IntRange(1, 99), default=5, show_default=True, help="Turns of each transport."
)
@click.option("--quick", is_flag=True, help="Few iterations, one round: to see that it works.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the records here, and make the page and plots of the documentation from them.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out/mpi"), show_default=True
)
def main(
    *,
    names: tuple[str, ...],
    mpirun: str,
    mpicc: str | None,
    rounds: int,
    quick: bool,
    keep: Path | None,
    out: Path,
) -> None:
    """Measure, and draw what came out. Fails when a byte was wrong, or UCX took another transport."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = [transport for transport in TRANSPORTS if not names or transport.name in names]
    measured: list[records.Record] = []
    try:
        mpi = Mpi(mpirun, mpicc or _compiler_of(mpirun))
        with _hosts(chosen) as hosts:
            for turn in range(1 if quick else rounds):
                for transport in chosen:
                    click.echo(f"round {turn + 1}: {transport.name}", err=True)
                    measured += _measured(mpi, transport, hosts, quick)
    except (Failed, MpiError, NoHosts) as error:
        raise click.ClickException(str(error)) from error
    records.write(out / "records.jsonl", measured)
    curves.write(measured, out / "compare.html")
    click.echo(curves.figures(measured))
    if keep is not None:
        document(measured, keep)
    click.echo(f"{out / 'records.jsonl'}\n{out / 'compare.html'}")
    sys.exit(0 if all(record.validated for record in measured) else 1)


def document(measured: list[records.Record], folder: Path) -> None:
    """Store the records, and make the page and plots of the documentation from them."""
    folder.mkdir(parents=True, exist_ok=True)
    records.write(folder / "records.jsonl", measured)
    PAGE.write_text(curves.fill(PAGE.read_text(), measured))
    curves.draw(measured, PAGE.parent / "pictures")


def _compiler_of(mpirun: str) -> str:
    path = Path(mpirun)
    ending = "".join(path.suffixes)
    beside = f"mpicc{ending}"
    return str(path.with_name(beside)) if path.parent != Path() else beside


if __name__ == "__main__":
    main()
