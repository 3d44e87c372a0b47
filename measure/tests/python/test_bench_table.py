"""The tables of `peerway bench` at the widths of real terminals."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from peerway_measure.bench import table
from peerway_measure.records import Record

VIAS = ("flag", "peer/shm", "peer/shm-nt", "peer/cma", "staged", "route", "openmpi", "openmpi/rma", "ucx")


def record(via: str, size: int = 8, us: float = 1.5, **other: Any) -> Record:
    fields: dict[str, Any] = {
        "test": "put_latency", "via": via, "op": "put", "shape": "contiguous", "bytes": size, "ranks": 2,
        "source": "host", "target": "host", "iterations": 10, "p50_us": us, "p99_us": 2 * us,
        "min_us": us / 2, "mean_us": us,
        "bandwidth_MBps": size / us, "messages_per_s": 1e6 / us, "validated": True,
        "cpu_percent": 100.0, "host": "n01", "device": "", "driver": "", "version": "0.1.0",
        "time": "2026-11-21T09:30:00Z",
    }  # fmt: skip
    return Record(**fields | other)


def drawn(records: list[Record], width: int, statistic: str | None = None) -> str:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        for block in table.blocks(records):
            console.print(table.title(block, statistic))
            for part in table.tables(block, console.width, statistic):
                console.print(part)
    return captured.get()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_way_is_lost(width: int) -> None:
    text = drawn([record(via, size, us=31.25) for via in VIAS for size in (8, 1 << 20)], width)
    assert max(map(len, text.splitlines())) <= width
    assert all(via in text.split() for via in VIAS)
    assert text.count("31.2 µs") == 2 * len(VIAS)


def test_a_row_has_the_median_of_its_repeats_and_holes_are_shown() -> None:
    text = drawn([record("staged", us=us) for us in (9.0, 2.0, 4.0)] + [record("route", 64, 3.0)], 80)
    assert "4.00 µs" in text
    assert "–" in text


def test_the_statistic_asked_for_is_shown_and_named() -> None:
    text = drawn([record("staged", us=3.0)], 80, "p99_us")
    assert "6.00 µs" in text
    assert "99th" in text


def test_wrong_data_cannot_be_overlooked() -> None:
    assert "WRONG DATA" in drawn([record("staged", validated=False)], 80)


def test_the_best_of_a_row_is_no_limit_of_the_hardware() -> None:
    block = table.blocks([record("flag", us=0.1), record("peer/shm", us=0.2), record("staged", us=9.0)])[0]
    (part,) = table.tables(block, 80)
    bold = [
        str(cell)
        for column in part.columns
        for cell in column.cells
        if "bold" in str(getattr(cell, "style", ""))
    ]
    assert bold == ["200 ns"]


def test_computations_are_rows_and_tell_the_cpus_use() -> None:
    rows = [
        record(
            f"{mode}/blocking", 128, us=3.0, test="async_pingpong", shape=f"compute:{size}", cpu_percent=45.2
        )
        for mode in ("cpu", "stream")
        for size in (4096, 65536)
    ]
    text = drawn(rows, 100)
    assert "CPU" in text.splitlines()[0]
    assert [line.split()[:2] for line in text.splitlines()[2:] if line] == [["4", "KiB"], ["64", "KiB"]]
    assert text.count("3.00 µs 45 %") == 4
