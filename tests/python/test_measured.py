"""The numbers of docs/measure/measured.md and docs/nic/torus.md are those of the records under results/."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import pytest

from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure import records

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "measure" / "measured.md").read_text()
K, M = 1 << 10, 1 << 20
WHOLE = "route openmpi nccl nvshmem nvshmem/kernel"
PACKED = "route openmpi/pack nccl/pack nvshmem/pack nvshmem/kernel"

# A row's beginning -> test, shape, bytes, and the ways whose numbers it has, in their order.
H200 = {
    "put of 256 MiB by `peer/copy`": ("put_bw", "contiguous", 256 * M, "peer/copy cuda"),
    "put of 256 MiB by `route`": ("put_bw", "contiguous", 256 * M, "route cuda"),
    "get of 256 MiB by `route`": ("get_bw", "contiguous", 256 * M, "route peer/copy"),
    "put and signal, 8 B": ("put_latency", "contiguous", 8, WHOLE),
    "put and signal, 512 KiB": ("put_latency", "contiguous", 512 * K, WHOLE),
    "face of rows": ("put_latency", "cube:256/j", 512 * K, PACKED),
    "face of single doubles": (
        "put_latency",
        "cube:256/k",
        512 * K,
        "route openmpi/pack nccl/pack nvshmem/kernel",
    ),
}
KERNELS = "packets/kernel sendrecv/kernel nvshmem/kernel"
EXCHANGE = "sendrecv/graph sendrecv/stream nccl/graph nccl openmpi nvshmem"
MESSAGES = "sendrecv/graph sendrecv/stream plan/stream nccl/graph openmpi nvshmem"
HALO = "plan/graph plan/stream plan openmpi/pack"
STENCIL = "graph/serial graph/branch stream/serial mpi mpi-overlap"
ASYNC = (
    "cpu/busy-poll transmit/busy-poll stream/busy-poll graph/busy-poll kernel/busy-poll "
    "cpu/blocking stream/blocking graph/blocking kernel/blocking"
)
for size, text in {8: "8 B", 64: "64 B", K: "1 KiB", 8 * K: "8 KiB", 64 * K: "64 KiB"}.items():
    H200[f"kernel to kernel, {text}"] = ("kernel_latency", "contiguous", size, KERNELS)
    if size != 64:
        H200[f"exchange of {text}"] = ("exchange", "contiguous", size, EXCHANGE)
    if size in (8, 8 * K):
        H200[f"message of {text}"] = ("plan_latency", "contiguous", size, MESSAGES)
H200["512² doubles over"] = ("halo", "halo:2x1/512x512/8", 8 * K, HALO)
H200["16⁴ of 192-byte"] = ("halo", "halo:2x1x1x1/8x16x16x16/192", 1536 * K, HALO)
H200["256² cells"] = ("stencil2d", "256x256", 2 * K, "in-kernel " + STENCIL)
H200["1024² cells"] = ("stencil2d", "1024x1024", 8 * K, "in-kernel " + STENCIL)
H200["4096² cells"] = ("stencil2d", "4096x4096", 32 * K, STENCIL)
for kib in (4, 64):
    H200[f"computing on {kib} KiB"] = ("async_pingpong", f"compute:{kib * K}", 128, ASYNC)
CPU = {
    "put and signal, 8 B": ("put_latency", "contiguous", 8, "peer/shm flag ucx openmpi openmpi/rma"),
    "put of 16 MiB": ("put_bw", "contiguous", 16 * M, "peer/shm memcpy ucx openmpi openmpi/rma"),
    "the same by `peer/shm-nt`": ("put_bw", "contiguous", 16 * M, "peer/shm-nt"),
    "halo of 512² doubles": ("halo", "halo:2x1/512x512/8", 8 * K, "plan openmpi openmpi/pack"),
}
NIC = {
    "put and signal of 8 B over a NIC": ("put_latency", "contiguous", 8, "nic:torus peer/shm flag openmpi"),
    "put of 1 MiB over a NIC": ("put_bw", "contiguous", M, "nic:torus peer/shm memcpy"),
}
RATE = {
    "put of 8 B, 64": ("put_mbw_mr", "contiguous", 8, "route peer/shm openmpi openmpi/rma ucx"),
    "get of 8 B": ("get_latency", "contiguous", 8, "route peer/shm openmpi ucx"),
}
FOUR = "graph/branch graph/serial stream/branch mpi mpi-overlap"
H200_X4 = {
    "256² cells": ("stencil2d", "256x256", 2 * K, "in-kernel " + FOUR),
    "1024² cells": ("stencil2d", "1024x1024", 8 * K, "in-kernel " + FOUR),
    "4096² cells": ("stencil2d", "4096x4096", 32 * K, FOUR),
    "512² doubles": ("halo", "halo:2x2/512x512/8", 16 * K, "plan/graph plan/stream openmpi/pack"),
    "16⁴ of 192-byte": (
        "halo",
        "halo:2x2x1x1/8x8x16x16/192",
        1536 * K,
        "plan/graph plan/stream openmpi/pack",
    ),
}
PUTS_TOO = "sendrecv/graph sendrecv/stream plan/graph plan/stream nccl/graph nccl"
H100: dict[str, tuple[str, str, int, str]] = {
    "put of 256 MiB by `route`": ("put_bw", "contiguous", 256 * M, "route cuda"),
    "get of 256 MiB by `route`": ("get_bw", "contiguous", 256 * M, "route peer/copy"),
}
for size, text in {8: "8 B", 8 * K: "8 KiB", 64 * K: "64 KiB"}.items():
    H100[f"exchange of {text}"] = ("exchange", "contiguous", size, PUTS_TOO)
    if size != 8 * K:
        messages = "sendrecv/graph sendrecv/stream plan/stream nccl/graph"
        H100[f"message of {text}"] = ("plan_latency", "contiguous", size, messages)
H100["kernel to kernel, 8 B"] = (
    "kernel_latency",
    "contiguous",
    8,
    "packets/kernel sendrecv/kernel plan/kernel",
)
H100["halo, 16⁴ of 192-byte"] = ("halo", "halo:2x1x1x1/8x16x16x16/192", 1536 * K, HALO)
H100_X4 = {
    **H200_X4,
    "16⁴ of 192-byte": ("halo", "halo:2x2x1x1/8x8x16x16/192", 1536 * K, "plan/graph plan/stream plan"),
}
FOLDERS = {
    "h200-x2": H200,
    "h100-x4": H100_X4,
    "h100-x2": H100,
    "h200-x4": H200_X4,
    "cpu-2": CPU,
    "cpu-2-nic": NIC,
    "host-rate": RATE,
}
ROWS = [(folder, *row) for folder, rows in FOLDERS.items() for row in rows.items()]


@pytest.mark.parametrize(("folder", "begins", "expected_row"), ROWS, ids=[f"{r[0]} {r[1]}" for r in ROWS])
def test_a_row_has_the_numbers_of_its_records(
    folder: str, begins: str, expected_row: tuple[str, str, int, str]
) -> None:
    test, shape, size, vias = expected_row
    measured = records.read(sorted((ROOT / "results" / folder).glob("*.jsonl")))
    section = PAGE.split(f"(`results/{folder}`)")[1].split("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith(f"| {begins}")]
    at = 0
    for via in vias.split():
        same = [r for r in measured if (r.test, r.shape, r.bytes, r.via) == (test, shape, size, via)]
        same = [r for r in same if r.ranks == max(s.ranks for s in same)]
        assert all(r.validated for r in same)
        if test.endswith("_bw"):
            text = bandwidth_text(median(r.bandwidth_MBps for r in same))
        else:
            text = time_text(median(r.p50_us for r in same))
        place = re.compile(rf" {re.escape(text)}[ ,]").search(row, at)
        assert place, f"{via}: {text} is not in its place in: {row}"
        at = place.end() - 1


def _us(measured: list[records.Record], test: str, size: int, via: str) -> float:
    return median(r.p50_us for r in measured if (r.test, r.bytes, r.via) == (test, size, via))


def _listed(times: Iterable[float]) -> str:
    """1.73, 2.12 and 2.52 µs."""
    *first, last = [time_text(us) for us in times]
    return f"{', '.join(text.removesuffix(' µs') for text in first)} and {last}"


def test_what_lines_changed_on_two_gpus() -> None:
    folder = ROOT / "results" / "h100-x2"
    old = records.read(sorted((folder / "before-lines").glob("*.jsonl")))
    new = records.read([folder / name for name in ("plans.jsonl", "halo.jsonl", "sends.jsonl")])
    section = " ".join(PAGE.split("(`results/h100-x2`)")[1].split("\n## ")[0].split())
    exchanges = _listed(_us(old, "exchange", size, "sendrecv/graph") for size in (8, 8 * K, 64 * K))
    messages = _listed(_us(old, "plan_latency", size, "sendrecv/graph") for size in (8, 64 * K))
    halo = _listed(_us(old, "halo", 1536 * K, via) for via in ("plan/graph", "plan/stream", "plan"))
    assert f"exchanges in a graph took {exchanges}, messages {messages}, the halo {halo} (" in section
    kernel = [time_text(_us(measured, "kernel_latency", 8, "sendrecv/kernel")) for measured in (new, old)]
    assert f"{kernel[0]} instead of {kernel[1].removesuffix(' µs')} by packets" in section
    read = [records.read([folder / "kernels" / f"{name}.jsonl"]) for name in ("before", "after")]
    less = [
        _us(read[0], "kernel_latency", 8, via) - _us(read[1], "kernel_latency", 8, via)
        for via in ("sendrecv/kernel", "plan/kernel")
    ]
    assert f"cost {less[0]:.2f} µs per message and {less[1]:.2f} µs per put (`kernels/`" in section
    puts = _listed(_us(read[1], "kernel_latency", size, "plan/kernel") for size in (8, 8 * K, 64 * K))
    assert f"takes {puts} for 8 B, 8 KiB and 64 KiB (`kernels/`)" in section
    on_gpus = [record for record in new if record.source.startswith("cuda")]
    sends = [_us(on_gpus, "send_exchange", size * M, "plan/straight") for size in (8, 16)]
    each = (sends[1] - sends[0]) / 8
    small = round(_us(new, "exchange", 8, "sendrecv/graph"), 2)
    whole = _us(new, "halo", 1536 * K, "plan/graph")
    assert f"takes {each:.2f} µs more for each MiB (`sends.jsonl`)." in section
    assert f"the faces need {1.5 * each:.2f} µs on the link" in section
    assert f"takes {small} µs: together {1.5 * each + small:.2f} µs" in section
    assert f"The halo takes {time_text(whole)}." in section
    threads = [records.read([folder / "line-threads" / f"{count}.jsonl"]) for count in (256, 512)]
    small, large = (
        [_us(measured, "halo", mib * M // 2, "plan/graph") for measured in threads] for mib in (3, 12)
    )
    fewer, more = map(time_text, small)
    assert f"with 256 threads the halo took {fewer}, with 512 it took {more};" in section
    fewer, more = map(time_text, large)
    assert f"two faces of 3 MiB took {fewer} and {more} (`line-threads/`" in section


def test_halos_by_each_method() -> None:
    """And that the table leads to the better one."""
    tables = PAGE.split("(`methods/`)")[1:]
    for ranks, table in zip((2, 4), tables, strict=True):
        measured = records.read([ROOT / "results" / f"h100-x{ranks}" / "methods" / "halo_sizes.jsonl"])
        assert len({record.bytes for record in measured}) >= 5
        for size in {record.bytes for record in measured}:
            us = {
                record.extra.get("allowed", ""): record.p50_us
                for record in measured
                if (record.bytes, record.via) == (size, "plan/graph")
            }
            best = min(us["plan/lines"], us["plan/straight"])
            assert us.get("", best) < 1.02 * best
            row = f"| {size / M:g} MiB | " + " | ".join(time_text(each) for each in us.values()) + " |"
            assert row in table.split("\n\n")[1]


def test_no_run_of_the_halo_on_four_gpus_was_slow() -> None:
    measured = records.read([ROOT / "results" / "h100-x4" / "halo.jsonl"])
    older = records.read([ROOT / "results" / "h100-x4" / "before-lines" / "halo.jsonl"])
    section = PAGE.split("(`results/h100-x4`)")[1].split("\n## ")[0]
    took = _listed(_us(older, "halo", 1536 * K, via) for via in ("plan/graph", "plan/stream", "plan"))
    assert f"the halo took {took}," in section
    row = "| the slowest p99 of a run |"
    differ = {}
    for via in ("plan/graph", "plan/stream", "plan"):
        runs = [record for record in measured if record.via == via]
        assert len(runs) == 20
        row += f" {time_text(max(record.p99_us for record in runs))} |"
        medians = [record.p50_us for record in runs]
        differ[via] = max(medians) / min(medians) - 1
    assert row in section
    assert f"differ by {differ['plan/graph']:.0%} in a graph, and by {differ['plan']:.0%} from".replace(
        "%", " %"
    ) in " ".join(section.split())


def test_no_run_of_the_stencil_on_four_gpus_was_slow() -> None:
    measured = records.read([ROOT / "results" / "h200-x4-stencil" / "stencil2d.jsonl"])
    assert all(record.validated for record in measured)
    section = PAGE.split("(`results/h200-x4-stencil`)")[1].split("\n## ")[0]
    medians, slowest = "| a step, median |", "| the slowest p99 of a run |"
    for via in ("graph", "graph/serial", "stream", "stream/serial"):
        runs = [record for record in measured if record.via == via and "mpi" not in record.command]
        assert len(runs) == 20
        medians += f" {time_text(median(record.p50_us for record in runs))} |"
        slowest += f" {time_text(max(record.p99_us for record in runs))} |"
    assert medians in section
    assert slowest in section
    mpi = {record.via: time_text(record.p50_us) for record in measured if record.via.startswith("mpi")}
    assert f"MPI took {mpi['mpi']}, and {mpi['mpi-overlap']} overlapped" in section


def test_what_a_blocking_wait_costs() -> None:
    measured = [
        json.loads(line) for line in (ROOT / "results" / "waits" / "h200.jsonl").read_text().splitlines()
    ]
    section = PAGE.split("(`results/waits`)")[1].split("\n## ")[0]
    for name, us in {
        "50 µs": 50,
        "100 µs": 100,
        "200 µs": 200,
        "500 µs": 500,
        "1 ms": 1000,
        "5 ms": 5000,
    }.items():
        row = f"| {name} |"
        for way in ("peerway, blocking", "cudaEventBlockingSync", "peerway, busy-poll"):
            (case,) = [case for case in measured if (case["way"], case["graph_us"]) == (way, us)]
            row += f" {case['p50_us']:.0f} µs, {case['cpu_us']:.0f} µs of CPU, {case['cpu_percent']:.0f} % |"
        assert row in section
    records_of = records.read([ROOT / "results" / "h200-x2" / "async_pingpong.jsonl"])
    for via, words in (("graph", "round trips costs {} to {} %"), ("stream", "one by one cost {} to {} %")):
        of = [
            use for case in records_of if case.via == f"{via}/blocking" for use in case.extra["cpu_percents"]
        ]
        assert words.format(round(min(of)), round(max(of))) in " ".join(PAGE.split())
    kernel = [case for case in records_of if case.via == "kernel/blocking"]
    assert max(use for case in kernel for use in case.extra["cpu_percents"]) <= 1


def test_what_pieces_of_many_messages_cost() -> None:
    lines = (ROOT / "results" / "plan-pieces" / "lqcd.jsonl").read_text().splitlines()
    us = {
        most: median(
            run["seconds"] / run["nconv"] * 1e6
            for run in map(json.loads, lines)
            if run["record"] == "solve"
            and (run["lattice"], run["pieces_of_a_message_at_most"]) == (32, most)
            and run["spin"] > 0
        )
        for most in (128, 32)
    }
    text = " ".join(PAGE.split())
    assert f"took {us[128]:.0f} µs on these GPUs, and {us[32]:.0f} µs with at most 32" in text


@pytest.mark.parametrize("op", ["put", "get"])
def test_the_route_of_numpy_memory_is_the_best_path_with_the_numbers_of_its_records(op: str) -> None:
    lines = (ROOT / "results" / "cpu-2-numpy" / "routes.jsonl").read_text().splitlines()
    measured = [size for size in map(json.loads, lines) if size["test"] == f"numpy_{op}"]
    assert all(size["validated"] and size["chosen"] == size["best"] for size in measured)
    section = PAGE.split("(`results/cpu-2-numpy`)")[1].split("\n## ")[0]
    assert f"| {' | '.join(size_text(size['bytes']) for size in measured)} |" in section
    for words, ratio in (("to best path alone", "route_to_best"), ("with a table", "route_to_untuned")):
        (row,) = [line for line in section.splitlines() if line.startswith(f"| {op}: route {words}")]
        assert row.endswith(f"| {' | '.join(format(size[ratio]['p50'], '.2f') for size in measured)} |")
    slower = [size["p50_us"]["staged"] / size["p50_us"][size["best"]] for size in measured]
    assert 2.7 <= round(min(slower), 1) < max(slower) < 410.5


def test_what_loss_costs_has_the_numbers_of_its_records() -> None:
    page = (ROOT / "docs" / "nic" / "torus.md").read_text()
    measured = records.read(ROOT / "results" / "cpu-2-torus" / "loss.jsonl")
    assert measured
    for clean, lossy in zip(measured[::2], measured[1::2], strict=True):
        assert (clean.validated, lossy.validated, clean.bytes, clean.extra["drop"]) == (True, True, M, 0)
        speeds = [f"{record.bandwidth_MBps:.0f} MB/s" for record in (clean, lossy)]
        cells = [str(lossy.extra["in_flight"]), *speeds, f"{lossy.extra['cost']:.0%}"]
        assert f"| {' | '.join(cells)} |" in page
