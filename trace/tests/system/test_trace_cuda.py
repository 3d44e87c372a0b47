"""What `peerway trace` records of GPUs, on doubles of the driver, CUPTI and NVTX: plans by the time of the
GPU, kernels and copies on a track for each stream, and the ranges of programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from launching import ROOT, Run, clean_environment, peerway, source_of

from peerway_trace.messages import match_signals
from peerway_trace.rings import Kind
from peerway_trace.store import Trace, load

TRACK = 0x40000000  # numbers of tracks that are no threads start here


def on_tracks(trace: Trace) -> Trace:
    tracks = np.array([thread.tid >= TRACK for thread in trace.threads])
    return trace.where(tracks[trace["thread"]])


def counts_of(trace: Trace) -> Counter[tuple[str, str]]:
    return Counter(
        (trace.names[a], trace.names[b]) for a, b in zip(trace["name"], trace["where"], strict=True)
    )


def line_of(program: Path, text: str) -> str:
    """The call site of the only line with this text."""
    (line,) = [at for at, words in enumerate(program.read_text().splitlines(), 1) if text in words]
    return f"main at {program.name}:{line}"


def sites(trace: Trace, kind: Kind) -> Counter[str]:
    return Counter(trace.names[site] for site in trace["site"][trace["kind"] == kind])


@pytest.mark.parametrize("device", ["cuda:0", "host"])
def test_plans_on_a_stream_and_in_kernels_are_recorded_with_what_they_send_and_notify(
    device: str, doubles: dict[str, str], tmp_path: Path, run: Run
) -> None:
    folder, source = tmp_path / "trace", source_of("traced_plans.py")
    program, gpu = [sys.executable, str(source), device, "12"], device != "host"
    if gpu:
        program.append(str(kernel := tmp_path / "in_kernel.so"))
        flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT / 'library' / 'include'}"]
        subprocess.run(["c++", *flags, str(source_of("in_kernel.cpp")), "-o", str(kernel)], check=True)
    words = peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program))
    done = run(words, env=clean_environment(**doubles))
    assert done.returncode == 0, done.stderr
    trace = load(folder)
    own = on_tracks(trace) if gpu else trace
    starts = {"GPU stream": 16, "kernel": 8} if gpu else {"host stream": 12}
    counts = counts_of(own)
    for start, turns in starts.items():
        assert counts["steps of a start", start] == counts["steps of a finish", start] == turns
    puts = own.where(own["kind"] == Kind.PUT)
    assert set(puts["bytes"]) == {65536}
    assert Counter(zip(puts.rank, puts["peer"], strict=True)) == {(0, 1): 12, (1, 0): 12}
    # Where the program started it. This is unknown for kernels: they have the place where the plan was made.
    lines = (
        {"plan.start(stream)": 8, "plan.start()": 8, ".prepare()": 8} if gpu else {"plan.start(stream)": 12}
    )
    places = Counter({line_of(source, text): count for text, count in lines.items()})
    assert sites(own, Kind.STEPS_START) == places
    if gpu:  # on the host, the thread that finds the receiver ready sends
        assert sites(own, Kind.PUT) == places
    finishes = {
        line_of(source, text.replace("start()", "finish(timeout=WAIT)").replace("start", "finish"))
        for text in lines
    }
    assert sites(own, Kind.STEPS_FINISH).keys() == finishes
    pairs = match_signals(trace)
    assert len(pairs.first) == 24
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0
    if gpu:
        (clock,) = trace.about["gpu_clocks"]  # the double's clock is that of the host
        assert abs(clock["offset_ns"]) < 50_000_000
        # Each start lies within the call that made it, as far as the clocks are known.
        assert len(own.threads) == 4


def library() -> str:
    from peerway_trace.cuda import injected

    file = injected()
    assert file is not None
    return str(file)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/injected.c and a double of CUPTI."""
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run(
        ["cc", "-O1", "-w", str(source_of("injected.c")), "-o", folder / "injected", "-ldl"], check=True
    )
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}", f"-I{ROOT / 'library' / 'include'}"]
    subprocess.run(
        ["c++", *flags, str(source_of("fake_cupti.cpp")), "-o", folder / "libcupti.so"], check=True
    )
    return folder


def test_kernels_and_copies_lie_on_a_track_for_each_stream(programs: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    env = clean_environment(PEERWAY_TRACE_CUPTI=str(programs / "libcupti.so"))
    done = run(peerway("trace", "-o", str(folder), "--", str(programs / "injected")), env=env)
    assert done.returncode == 0, done.stderr
    assert "CUPTI lost 3 kernels and copies" in done.stderr
    trace = load(folder)
    own = on_tracks(trace)
    by_track = {
        trace.threads[thread].thread: counts_of(own.where(own["thread"] == thread))
        for thread in set(own["thread"])
    }
    assert by_track == {
        "cuda:0/7": {("scale(float*, int)", ""): 2, ("GPU copy", "device to host"): 1, ("GPU fill", ""): 1},
        "cuda:0/8": {("plain_c", ""): 1},
    }
    kernels = own.where(own["kind"] == Kind.KERNEL)
    assert sorted(kernels["duration"]) == [1000, 1000, 2000]
    assert sorted(kernels["tag"]) == [3000, 3000, 5000]
    assert set(own["bytes"][own["kind"] == Kind.COPY]) == {4096}
    # The same clock as the threads': NVTX's ranges came before the kernels of the last microseconds.
    ranges = trace.where(trace["kind"] == Kind.RANGE)
    assert own["begin"].max() > ranges["begin"].max()


def test_ranges_and_marks_of_nvtx_are_regions(programs: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    env = clean_environment(PEERWAY_TRACE_CUPTI=str(programs / "libcupti.so"))
    assert run(peerway("trace", "-o", str(folder), "--", str(programs / "injected")), env=env).returncode == 0
    trace = load(folder)
    own = trace.where(np.array([thread.source == "nvtx" for thread in trace.threads])[trace["thread"]])
    assert counts_of(own) == {("outer", ""): 3, ("registered", "library"): 3, ("here", ""): 3, ("all", ""): 1}
    kinds = Counter(Kind(kind) for kind in own["kind"])
    assert kinds == {Kind.REGION: 6, Kind.MARK: 3, Kind.RANGE: 1}
    begin, end = own["begin"], own["begin"] + own["duration"]
    (whole,) = np.flatnonzero(own["kind"] == Kind.RANGE)
    assert np.all(begin >= begin[whole])
    assert np.all(end <= end[whole])
    assert trace.open == []


def test_a_program_without_cupti_is_told_so_and_runs(programs: Path, tmp_path: Path, run: Run) -> None:
    env = clean_environment(PEERWAY_TRACE_CUPTI=str(tmp_path / "nowhere.so"))
    folder = tmp_path / "trace"
    done = run(peerway("trace", "-o", str(folder), "--", str(programs / "injected")), env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"are not recorded, for CUPTI does not serve: .*; install nvidia-cuda-cupti", done.stderr
    )
    assert len(load(folder)) == 10  # NVTX's


def test_what_is_injected_by_another_tool_is_kept() -> None:
    from peerway_trace import cuda

    assert cuda.variables({})["CUDA_INJECTION64_PATH"] == library()
    assert "CUDA_INJECTION64_PATH" not in cuda.variables({"CUDA_INJECTION64_PATH": "/opt/tool.so"})


SIZES = {"uint8_t": 1, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8}


def offsets(header: str, struct: str) -> dict[str, int]:
    """The offsets of a struct's members, up to the first that has no plain type. Enums have 4 bytes."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
    definition = re.search(rf"struct {struct} \{{((?:(?!struct ).)*?)\n\}};", text, re.S) or re.search(
        rf"typedef struct \w* ?\{{((?:(?!typedef struct ).)*?)\}}\s*{struct};", text, re.S
    )
    assert definition, struct
    body = re.sub(r"union \{.*?\}\s*(\w+);", r"uint8_t \1;", definition[1], count=1, flags=re.S)
    at, places = 0, {}
    for line in body.replace("{", ";").split(";"):
        match = re.fullmatch(r"\s*(?:const )?(\w+)\s*([*\s].*)", line, re.S)
        if match is None or "#" in line:
            continue
        for declared in match[2].split(","):
            name = re.sub(r"\W|\[.*", "", declared)
            size = 8 if "*" in declared else SIZES.get(match[1], 4)
            many = int(count[1]) if (count := re.search(r"\[(\d+)\]", declared)) else 1
            at = (at + size - 1) // size * size
            places[name] = at
            at += size * many
    return places


def test_the_records_of_cupti_are_as_its_header_has_them() -> None:
    headers = [
        *Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/include/cupti_activity.h"),
        *Path("/usr/local").glob("cuda*/extras/CUPTI/include/cupti_activity.h"),
        *map(Path, filter(None, os.environ.get("CUPTI_HEADERS", "").split(":"))),
    ]
    if not headers:
        pytest.skip("no cupti_activity.h here: pip install nvidia-cuda-cupti, or name it by CUPTI_HEADERS")
    own = (ROOT / "trace" / "cuda" / "cupti_abi.h").read_text()
    kernel, copy = offsets(own, "KernelRecord"), offsets(own, "CopyRecord")
    for header in headers:
        text = header.read_text()
        theirs = max(re.findall(r"CUpti_ActivityKernel\d+(?=;)", text), key=lambda name: int(name[20:]))
        for struct, mine, members in (
            (theirs, kernel, "start end completed deviceId streamId correlationId gridId name"),
            ("CUpti_ActivityMemcpy6", copy, "copyKind bytes start end deviceId streamId correlationId"),
            ("CUpti_ActivityMemcpyPtoP4", copy, "copyKind bytes start end deviceId streamId"),
            ("CUpti_ActivityMemset4", copy, "bytes start end deviceId streamId correlationId"),
        ):
            places = offsets(text, struct)
            assert {name: mine[name] for name in members.split()} == {
                name: places[name] for name in members.split()
            }, struct
