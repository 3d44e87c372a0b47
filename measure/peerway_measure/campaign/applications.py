"""Makes records from the output of a campaign's test. Records are taken as they are, and the JSON lines of
`apps/hpl` and `apps/lqcd` are converted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from peerway_common.printable import printable
from peerway_measure import records
from peerway_measure.bench import machine
from peerway_measure.records import Record, RecordError

_PARTS = ("hop", "halo", "algebra", "iteration")  # the parts of lqcd's output
Line = dict[str, Any]


def read(path: Path, command: str) -> list[Record]:
    """All records in the output of this command. Raises RecordError."""
    lines = list(_lines(path))
    if not lines:
        return records.read(path)
    measured: list[Record] = []
    for line in lines:
        try:
            if line["record"] == "hpl":
                measured.append(_of_hpl(line, command))
            if line["record"] == "lqcd":
                measured += _of_lqcd(line, command)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            kind = printable(str(line["record"]))
            raise RecordError(f"a line of {kind} is incomplete, or has an unknown form: {error!r}") from None
    return measured


def _lines(path: Path) -> Iterator[Line]:
    """The JSON lines in the output of an application, which also has readable lines."""
    with path.open(errors="replace") as file:
        for line in file:
            if line.startswith("{"):
                with suppress(ValueError):
                    document = json.loads(line)
                    if "record" in document:
                        yield document


def _of_hpl(line: Line, command: str) -> Record:
    kept = ("gflops", "residual", "variant", "gemm_gflops_rank", "memory_share", "phases_s")
    return Record.from_samples(
        [line["seconds"] * 1e9],
        test="hpl",
        via=str(line["comm"]),
        op="solve",
        shape=f"N {line['n']} NB {line['nb']} {line['p']}x{line['q']} {line['bcast']}",
        bytes=8 * int(line["n"]) ** 2,
        ranks=int(line["p"]) * int(line["q"]),
        validated=bool(line["passed"]),
        extra={name: line[name] for name in kept if name in line},
        **_known(line, command),
    )


def _of_lqcd(line: Line, command: str) -> Iterator[Record]:
    times, planes = line["lattice"][0], " x ".join(map(str, line["grid"]))
    for part in _PARTS:
        if line[f"{part}_us"] > 0:  # a halo exchange that is completely hidden takes no time
            yield Record.from_samples(
                [line[f"{part}_us"] * 1e3],
                test=f"lqcd_{part}",
                via=str(line["program"]),
                op="solve",
                shape=f"{times}⁴ {line['layout']} {planes}",
                bytes=0,
                ranks=int(line["ranks"]),
                validated=bool(line["nconv"]) and all(n > 0 for n in line["nconv"]),
                extra={"solver_gflop": line["solver_gflop"], "gauge": line["gauge"]},
                **_known(line, command),
            )


def _known(line: Line, command: str) -> dict[str, Any]:
    device = str(line["device"])
    memory = "cuda:0" if device.startswith("NVIDIA") else "host"
    return {
        **machine.known(),
        "source": memory,
        "target": memory,
        "device": device,
        "driver": machine.cuda_driver() if memory == "cuda:0" else "",
        "cpu_percent": None,
        "command": command,
    }
