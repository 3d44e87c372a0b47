"""What a trace costs, in pairs: each round runs the program once in each way, one after the other.

    python apps/trace/trace_cost.py [--rounds 21] [--without BUILD] [--before BUILD] [--out FILE]

The ways: `without` (a library compiled with -DPEERWAY_NO_TRACE, where BUILD has one), `off`, `counters`,
`profile` and `full`. `pairs` is one run at level full that stops and starts recording every 50 rounds, which
makes pairs that no load of the machine tells apart; `before pairs` is that of another library. A line of the
record is one run. What is printed is the median of the differences from `off` (of pairs: from their own
`off`) with the interval that holds it with 95 % (of the order of the differences).
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

from peerway_measure.bench import machine

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "editable" / "library" / "src"
PROGRAM = ROOT / "apps" / "trace" / "cost.cpp"
TESTS = {  # ranks, rounds of the program
    "put": (1, 2000), "pingpong": (2, 20_000), "region": (1, 2000), "python": (1, 2000),
}  # fmt: skip


def typed(script: str, *paths: Path | None) -> str:
    """The command as a user types it in the repository,
    with absolute paths made relative or shortened to names.
    """
    names = {
        path: str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        for path in paths
        if path is not None and path.is_absolute()
    }
    return machine.recorded_command(["python", f"apps/trace/{script}", *sys.argv[1:]], names)


def build(folder: Path) -> Path:
    """Compile the program against the library of the editable build."""
    target = folder / "cost"
    flags = [
        "-std=c++20",
        "-O2",
        "-pthread",
        f"-I{ROOT / 'library' / 'include'}",
        f"-L{LIBRARY}",
        "-lpeerway",
    ]
    subprocess.run(["c++", str(PROGRAM), *flags, "-o", str(target)], check=True)
    return target


def once(program: Path, test: str, way: str, library: Path) -> list[float]:
    """Run it once; returns nanoseconds, and for pairs those without and with a trace. Rings are in memory,
    as usual.
    """
    ranks, rounds = TESTS[test]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as rings:
        variables = {**os.environ, "LD_LIBRARY_PATH": str(library)}
        if way not in ("without", "off"):
            level = "full" if "pairs" in way else way
            variables |= {"PEERWAY_TRACE_DIR": rings, "PEERWAY_TRACE_LEVEL": level}
        words = [str(program), test, str(rounds), *(["pairs"] if "pairs" in way else [])]
        if test == "python":
            words = [sys.executable, str(PROGRAM.with_suffix(".py")), str(rounds)]
        if ranks > 1:
            words = [sys.executable, "-m", "peerway", "run", "-n", str(ranks), "--", *words]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=variables)
    return [float(word) for word in done.stdout.split()]


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median by order statistics alone."""
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
    parser.add_argument("--before", type=Path, help="the folder of another libpeerway.so to compare with")
    parser.add_argument("--ways", help="separated by commas [default: all]")
    parser.add_argument("--tests", default=",".join(TESTS), help="separated by commas")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tests = options.tests.split(",")
    ways = ["off", "counters", "profile", "full", "pairs"]
    if options.without:
        ways.insert(0, "without")
    if options.before:
        ways.append("before pairs")
    if options.ways:
        ways = options.ways.split(",")
    libraries = {"without": options.without, "before pairs": options.before}
    lines: list[dict[str, object]] = []
    command = typed("trace_cost.py", options.without, options.before, options.out)
    times: dict[tuple[str, str], list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for number in range(options.rounds):
            for test in tests:
                for way in ways:
                    if test == "python" and (way in libraries or way == "pairs"):
                        continue  # Python uses its own library
                    ns = once(program, test, way, libraries.get(way, LIBRARY))
                    times.setdefault((test, way), []).append(ns)
                    lines.append(
                        {
                            "test": test, "way": way, "round": number, "ns": ns[-1],
                            **({"off_ns": ns[0]} if len(ns) > 1 else {}), "load": os.getloadavg()[0],
                            "time": datetime.now(UTC).isoformat(timespec="seconds"),
                            "command": command,
                        }
                    )  # fmt: skip
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for test, way in times:
        if way != "off":
            show(test, way, times)


def show(test: str, way: str, times: dict[tuple[str, str], list[list[float]]]) -> None:
    """Print how much longer a level takes."""
    with_it = [sample[-1] for sample in times[test, way]]
    base = [sample[0] for sample in times[test, way if "pairs" in way else "off"]]
    differences = [b - a for a, b in zip(base, with_it, strict=True)]
    low, high = interval(differences)
    share = median(100 * b / a - 100 for a, b in zip(base, with_it, strict=True))
    print(
        f"{test:8} {median(base):7.1f} ns, {way:12} {median(differences):+6.1f} ns "
        f"[{low:+.1f}, {high:+.1f}], {share:+.1f} %"
    )


if __name__ == "__main__":
    main()
