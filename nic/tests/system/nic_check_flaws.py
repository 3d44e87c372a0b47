"""Runs a whole `peerway nic-check` on a NIC with each flaw, and on correct ones: a record for results/.

python nic/tests/system/nic_check_flaws.py >> results/nic-check/flaws.jsonl
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "shared"))

from launching import clean_environment, compile_nic, peerway, source_of
from test_nic_check import CORRECT, FLAWS, HANGS

AT_A_TIME = 2
OPTIONS = sys.argv[1:]  # options of nic-check


def whole_run(nic: Path, flaw: str) -> dict[str, object]:
    """What a run says of the NIC with that flaw."""
    began = time.monotonic()
    done = subprocess.run(
        peerway("nic-check", f"{nic}?{flaw}", *OPTIONS),
        env=clean_environment(), capture_output=True, text=True, check=False, timeout=HANGS,
    )  # fmt: skip
    broken = [
        line[len("broken ") :].strip() for line in done.stdout.splitlines() if line.startswith("broken ")
    ]
    expected = FLAWS[flaw][0] if flaw in FLAWS else ""
    return {
        "test": "nic_check_flaw",
        "command": " ".join(["peerway", "nic-check", f"{nic.name}?{flaw}", *OPTIONS]),
        "flaw": flaw,
        "correct": flaw in CORRECT,
        "expected_test": expected,
        "found_by_expected_test": any(line.startswith(expected) for line in broken) if expected else None,
        "status": done.returncode,
        "broken": [line[:300] for line in broken],
        "last": [line for line in done.stdout.splitlines() if " ok, " in line],
        "seconds": round(time.monotonic() - began, 1),
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    """Print one line of JSON for each NIC."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as pool:
        nic = compile_nic(source_of("full_nic.cpp"), Path(folder))
        for record in pool.map(lambda flaw: whole_run(nic, flaw), [*CORRECT, *FLAWS]):
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
