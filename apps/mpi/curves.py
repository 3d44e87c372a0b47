"""Draws the comparison as curves by message size, and makes its tables: medians over the rounds."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import click
import plotly.graph_objects as go

from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure.records import Record
from peerway_measure.report.pictures import CannotDraw, as_svg

K, M = 1 << 10, 1 << 20
PICTURES = ("mpi-latency", "mpi-bandwidth")
BEGIN, END = "<!-- from the records -->", "<!-- end of the records -->"
# The colours of Okabe and Ito; the NIC's curves are solid.
LOOKS = {
    "nic:torus": ("over the NIC: torus, one host", "#0072b2", "solid", "circle"),
    "nic:torus/timed": ("over the NIC: torus, one host, timed", "#56b4e9", "solid", "diamond"),
    "nic:torus/hosts": ("over the NIC: torus, between hosts", "#009e73", "solid", "square"),
    "posix": ("UCX posix", "#d55e00", "dash", "triangle-up"),
    "posix+cma": ("UCX posix, cma", "#e69f00", "dash", "triangle-down"),
    "sysv": ("UCX sysv", "#cc79a7", "dash", "x"),
    "tcp": ("UCX tcp, loopback", "#000000", "dash", "cross"),
    "tcp/hosts": ("UCX tcp, between hosts", "#7f7f7f", "dash", "star"),
}


def value(records: list[Record], test: str, via: str, size: int, name: str = "p50_us") -> float | None:
    """The median of a field over the rounds; None without a record."""
    values = [getattr(r, name) for r in records if (r.test, r.via, r.bytes) == (test, via, size)]
    return float(median(values)) if values else None


def ratios(records: list[Record]) -> dict[str, float]:
    """The NIC's results relative to those that it must not be worse than."""
    by_name = {}
    for name, test, field, sizes, peers in (
        ("latency", "mpi_latency", "p50_us", (1, K, 4 * K), ("tcp", "posix")),
        ("bandwidth", "mpi_bw", "bandwidth_MBps", (64 * K, M, 4 * M), ("posix", "posix+cma")),
        ("bandwidth, fresh memory,", "mpi_fresh_bw", "bandwidth_MBps", (M,), ("posix", "posix+cma")),
    ):
        for peer in peers:
            for size in sizes:
                own, other = (value(records, test, via, size, field) for via in ("nic:torus", peer))
                if own and other:
                    by_name[f"{name} of {size_text(size)}: `nic:torus` / `{peer}`"] = own / other
    return by_name


def figures(records: list[Record]) -> str:
    """The tables of docs/nic/mpi-compared.md."""
    first = records[0]
    rounds = max(
        sum((r.test, r.via, r.bytes) == (first.test, v, first.bytes) for r in records) for v in LOOKS
    )
    where = f"{first.extra['mpi']}, UCX {first.extra['ucx']}, 2 ranks, {first.device}, {first.time[:10]}"
    load = median(r.extra["load"] for r in records)
    lines = [
        f"{where}; medians of {rounds} {'round' if rounds == 1 else 'rounds'}; load average {load:.1f}.",
        "",
        "| latency, one way | 1 B | 99 % | 1 KiB | 99 % | 4 KiB | 99 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    measured = [via for via in LOOKS if any(r.via == via for r in records)]
    for via in measured:
        times = [
            value(records, "mpi_latency", via, size, name)
            for size in (1, K, 4 * K)
            for name in ("p50_us", "p99_us")
        ]
        lines.append(_row(f"`{via}`", ["–" if us is None else time_text(us) for us in times]))
    head = "| bandwidth | 1 KiB | 64 KiB | 1 MiB | 4 MiB | fresh memory: 64 KiB | 1 MiB | 4 MiB |"
    lines += ["", head, "|" + " --- |" * 8]
    cases = [("mpi_bw", size) for size in (K, 64 * K, M, 4 * M)]
    cases += [("mpi_fresh_bw", size) for size in (64 * K, M, 4 * M)]
    for via in measured:
        rates = [value(records, test, via, size, "bandwidth_MBps") for test, size in cases]
        lines.append(_row(f"`{via}`", ["–" if rate is None else bandwidth_text(rate) for rate in rates]))
    lines += ["", "| times as much | |", "| --- | --- |"]
    lines += [_row(name, [f"{ratio:.2f}"]) for name, ratio in ratios(records).items()]
    return "\n".join(lines)


def _row(name: str, cells: list[str]) -> str:
    return "| " + " | ".join([name, *cells]) + " |"


def fill(page: str, records: list[Record]) -> str:
    """The page with its tables replaced by those of the records."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{figures(records)}\n\n{END}{tail}"


def latency(records: list[Record]) -> go.Figure:
    """Half the round trip by size: medians as thick lines, 99th percentiles as thin ones."""
    figure = go.Figure()
    for via, (name, colour, dash, marker) in LOOKS.items():
        sizes = _sizes(records, "mpi_latency", via)
        if not sizes:
            continue
        line = {"color": colour, "dash": dash}
        y = [value(records, "mpi_latency", via, size) for size in sizes]
        look = {"symbol": marker, "size": 6}
        figure.add_trace(
            go.Scatter(x=_names(sizes), y=y, name=name, mode="lines+markers", line=line, marker=look)
        )
        tail = [value(records, "mpi_latency", via, size, "p99_us") for size in sizes]
        thin = {"color": colour, "dash": "dot", "width": 1}
        figure.add_trace(go.Scatter(x=_names(sizes), y=tail, mode="lines", line=thin, showlegend=False))
    figure.update_yaxes(type="log", dtick=1, tickformat=",", title_text="µs, one way")
    return _laid_out(figure, "latency; thin dotted: 99th percentile", records)


def bandwidth(records: list[Record]) -> go.Figure:
    """Bandwidth of a one-way window of messages by size."""
    figure = go.Figure()
    for via, (name, colour, dash, marker) in LOOKS.items():
        sizes = _sizes(records, "mpi_bw", via)
        y = [(value(records, "mpi_bw", via, size, "bandwidth_MBps") or 0) / 1e3 for size in sizes]
        if sizes:
            line, look = {"color": colour, "dash": dash}, {"symbol": marker, "size": 6}
            figure.add_trace(
                go.Scatter(x=_names(sizes), y=y, name=name, mode="lines+markers", line=line, marker=look)
            )
    figure.update_yaxes(title_text="GB/s", rangemode="tozero")
    return _laid_out(figure, "bandwidth, windows of at most 64 messages", records)


def _sizes(records: list[Record], test: str, via: str) -> list[int]:
    return sorted({r.bytes for r in records if (r.test, r.via) == (test, via)})


def _names(sizes: list[int]) -> list[str]:
    return [size_text(size) for size in sizes]


def _laid_out(figure: go.Figure, title: str, records: list[Record]) -> go.Figure:
    first = records[0]
    where = f"{first.extra['mpi']}, UCX {first.extra['ucx']}, 2 ranks on {first.device}"
    figure.update_xaxes(title_text="message", type="category")
    text = f"{title}<br><sub>{where}</sub>"
    return figure.update_layout(title=text, template="plotly_white", width=900, height=460)


def write(records: list[Record], page: Path) -> None:
    """Write a page for a browser."""
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=number == 0)
        for number, figure in enumerate((latency(records), bandwidth(records)))
    ]
    page.write_text('<meta charset="utf-8"><title>MPI compared</title>' + "".join(parts))


def draw(records: list[Record], folder: Path) -> None:
    """Write the pictures."""
    try:
        drawn = as_svg([latency(records), bandwidth(records)])
    except CannotDraw as error:
        raise click.ClickException(str(error)) from error
    for name, svg in zip(PICTURES, drawn, strict=True):
        (folder / f"{name}.svg").write_text(svg + "\n")
