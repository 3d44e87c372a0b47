"""docs/nic/mpi-suite.md from the records of apps/mpi/suite.py.

    python apps/mpi/suite_page.py

Reads results/mpi-suite/*.jsonl, and reasons.json beside them: what a person found out about a failure, by the
start of the program's name, with "late " before it where all runs were out of time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "nic" / "mpi-suite.md"
FOLDER = ROOT / "results" / "mpi-suite"
BEGIN, END = "<!-- from the records -->", "<!-- end of the records -->"
MPIS = {
    "mpich": "MPICH 4.0.2",
    "mpich-faults": "MPICH 4.0.2, torus with faults",
    "openmpi": "Open MPI 4.1.4",
    "openmpi-faults": "Open MPI 4.1.4, torus with faults",
}

Record = dict[str, object]


def read() -> dict[str, list[Record]]:
    """Read the records of each MPI."""
    files = sorted(FOLDER.glob("*.jsonl"))
    return {file.stem: [json.loads(line) for line in file.read_text().splitlines()] for file in files}


def _tries(record: Record, transport: str) -> list[dict[str, object]]:
    runs = record["runs"]
    assert isinstance(runs, dict)
    tries = runs.get(transport, [])
    assert isinstance(tries, list)
    return tries


def _passes(record: Record, transport: str) -> str:
    tries = _tries(record, transport)
    return f"{sum(bool(run['passed']) for run in tries)} of {len(tries)}" if tries else "not run"


def _reason(record: Record, reasons: dict[str, str]) -> str:
    program = ("late " if record["verdict"] == "out of time" else "") + str(record["program"])
    matches = [reasons[start] for start in sorted(reasons, key=len) if program.startswith(start)]
    return matches[-1] if matches else "not looked into yet"


def _folder(record: Record) -> str:
    named = re.search(r"(\w+)/", str(record["program"]))
    return named[1] if named else ""


def _counts(mpi: str, records: list[Record]) -> list[str]:
    lines = []
    folders = sorted({_folder(record) for record in records})
    for folder in folders:
        of_folder = [record for record in records if _folder(record) == folder]
        verdicts = Counter(str(record["verdict"]) for record in of_folder)
        built = len(of_folder) - verdicts["not built"]
        counts = [built, *(verdicts[each] for each in ("passed", "out of time", "not built"))]
        lines.append(f"| {MPIS[mpi]} | {folder} | " + " | ".join(map(str, counts)) + " |")
    return lines


def tables(by_mpi: dict[str, list[Record]], reasons: dict[str, str]) -> str:
    """The tables of the page."""
    lines = [
        "| MPI | folder | run | passed over the NIC | out of time | not built by this MPI |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for mpi, records in by_mpi.items():
        lines += _counts(mpi, records)
    lines += ["", "Programs that failed at least once, or ran out of time:", ""]
    lines += [
        "| MPI | program | ranks | NIC | TCP of UCX | alone | reason |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for mpi, records in by_mpi.items():
        for record in sorted(records, key=lambda record: str(record["program"])):
            if record["verdict"] in ("passed", "not built"):
                continue
            passes = " | ".join(_passes(record, transport) for transport in ("nic", "tcp", "alone"))
            start = f"| {MPIS[mpi]} | `{record['program']}` | {record['ranks']} | {passes}"
            lines.append(f"{start} | {_reason(record, reasons)} |")
    return "\n".join(lines)


def fill(page: str, by_mpi: dict[str, list[Record]], reasons: dict[str, str]) -> str:
    """The page with the tables between its marks replaced."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables(by_mpi, reasons)}\n{END}{after}"


if __name__ == "__main__":
    known = json.loads((FOLDER / "reasons.json").read_text())
    PAGE.write_text(fill(PAGE.read_text(), read(), known))
