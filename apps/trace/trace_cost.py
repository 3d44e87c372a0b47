"""What a trace costs, in pairs: each round runs the program once in each way, one after the other.

    python apps/trace/trace_cost.py [--rounds 21] [--without BUILD] [--out results/trace/cost.jsonl]

The ways: `without` (a library compiled with -DPEERWAY_NO_TRACE, where BUILD has one), `off`, `counters`,
`profile` and `full`. A line of the record is one run; what is printed is the median of the rounds'
differences from `off` with the interval that holds it with 95 % (of the order of the differences).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from math import comb
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "editable" / "src"
PROGRAM = ROOT / "apps" / "trace" / "cost.cpp"
TESTS = {"put": (1, 2000), "pingpong": (2, 200_000), "region": (1, 2000)}  # ranks, rounds of the program


def build(folder: Path) -> Path:
    """Compile the program against the library of the editable build."""
    target = folder / "cost"
    flags = ["-std=c++20", "-O2", "-pthread", f"-I{ROOT / 'include'}", f"-L{LIBRARY}", "-lpeerway"]
    subprocess.run(["c++", str(PROGRAM), *flags, "-o", str(target)], check=True)
    return target


def once(program: Path, test: str, way: str, without: Path | None) -> float:
    """Run it once; nanoseconds."""
    ranks, rounds = TESTS[test]
    with tempfile.TemporaryDirectory() as rings:
        library = without if way == "without" and without else LIBRARY
        variables = {**os.environ, "LD_LIBRARY_PATH": str(library)}
        if way not in ("without", "off"):
            variables |= {"PEERWAY_TRACE_DIR": rings, "PEERWAY_TRACE_LEVEL": way}
        words = [str(program), test, str(rounds)]
        if ranks > 1:
            words = [sys.executable, "-m", "peerway", "run", "-n", str(ranks), "--", *words]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=variables)
    return float(done.stdout)


def interval(values: list[float]) -> tuple[float, float]:
    """The median lies between these with 95 %, by the order of the values alone."""
    ordered, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2 and outside + 2 * comb(count, rank) / 2**count <= 0.05:
        outside += 2 * comb(count, rank) / 2**count
        rank += 1
    return ordered[max(0, rank - 1)], ordered[count - max(1, rank)]


def main() -> None:
    """Measure, keep the record, print the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--without", type=Path, help="the folder of a libpeerway.so without the branch")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    ways = [*(["without"] if options.without else []), "off", "counters", "profile", "full"]
    lines: list[dict[str, object]] = []
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for number in range(options.rounds):
            for test in TESTS:
                for way in ways:
                    ns = once(program, test, way, options.without)
                    times.setdefault((test, way), []).append(ns)
                    lines.append(
                        {
                            "test": test, "way": way, "round": number, "ns": ns, "load": os.getloadavg()[0],
                            "time": datetime.now(UTC).isoformat(timespec="seconds"),
                            "command": " ".join(["python", *sys.argv]),
                        }
                    )  # fmt: skip
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for test in TESTS:
        base = times[test, "off"]
        print(f"{test}: off {median(base):.1f} ns")
        for way in ways:
            if way != "off":
                differences = [b - a for a, b in zip(base, times[test, way], strict=True)]
                low, high = interval(differences)
                share = 100 * median(differences) / median(base)
                print(f"  {way:9} {median(differences):+6.1f} ns [{low:+.1f}, {high:+.1f}], {share:+.1f} %")


if __name__ == "__main__":
    main()
