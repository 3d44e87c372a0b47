"""Times programs with directives beside the same programs in CUDA by hand (cuda/*.cu), in turn, on one GPU.

    python examples/xacc/compare_cuda.py --out results/xacc/by-hand.jsonl [--repeat 5] [--programs stream ...]

A record has the speeds of all runs of one size, and the medians of the ratios of neighbours. A run whose
program finds its result wrong, or whose result is not that of the other form, ends everything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compare import HERE, PEERWAY, ratio

CLOSE = 1e-5  # relative: sums of floats in another order


@dataclass(frozen=True)
class Case:
    """One program at one size."""

    program: str
    defines: tuple[str, ...]
    arguments: tuple[str, ...] = ()


CASES = [
    Case("stream", ("N=67108864",)),
    Case("laplace", ("N=1024",), ("2000",)),
    Case("laplace", ("N=4096",), ("400",)),
    Case("laplace", ("N=16384",), ("50",)),
    Case("himeno", ("MI=129", "MJ=129", "MK=257")),
    Case("himeno", ("MI=257", "MJ=257", "MK=513")),
    Case("cg", ("CLASS_A",)),
    Case("cg", ("CLASS_B",)),
    Case("cg", ("CLASS_C",)),
]
# The lines with a speed that a program prints, and their unit.
SPEEDS = {
    "stream": (r"(\w+) +([\d.]+) MB/s", "MB/s"),
    "laplace": (r"()([\d.]+) million points a second", "million points a second"),
    "himeno": (r"()([\d.]+) MFLOPS", "MFLOPS"),
    "cg": (r"()([\d.]+) Mop/s", "Mop/s"),
}


def main() -> None:
    """Build both forms of each case, run them in turn, and write the records."""
    plain = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--programs", nargs="*", choices=SPEEDS, default=list(SPEEDS))
    given = options.parse_args()
    if shutil.which("nvcc") is None:
        sys.exit("compare_cuda: nvcc is not on the PATH; it compiles the programs in cuda/")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for case in [case for case in CASES if case.program in given.programs]:
            programs = built(Path(folder), case)
            runs: dict[str, list[dict[str, float]]] = {form: [] for form in programs}
            for _ in range(given.repeat):
                for form, program in programs.items():
                    runs[form].append(speeds(case, [program, *case.arguments]))
            for name in runs["xacc"][0]:
                records.append(record(case, name, runs))
                print(f"{case.program} {' '.join(case.defines)} {name}: {records[-1]['ratio']:.3f} x by hand")
    given.out.write_text("".join(json.dumps(line) + "\n" for line in records))


def built(folder: Path, case: Case) -> dict[str, str]:
    """Compile both forms; the path of each."""
    defines = [f"-D{define}" for define in case.defines]
    name = "-".join((case.program, *case.defines))
    forms = {form: str(folder / f"{name}-{form}") for form in ("xacc", "cuda")}
    source = HERE / f"{case.program}.c"
    subprocess.check_call([PEERWAY, "cc", "-O3", *defines, source, "-lm", "-o", forms["xacc"]])
    options = ["-O3", "-std=c++17", "-arch=native", "--extended-lambda", *defines]
    by_hand = HERE / "cuda" / f"{case.program}.cu"
    subprocess.check_call(["nvcc", *options, str(by_hand), "-o", forms["cuda"]])
    return forms


results: dict[Case, str] = {}


def speeds(case: Case, command: list[str]) -> dict[str, float]:
    """Run a program; the speeds that it prints, by their names."""
    environment = {**os.environ, "PEERWAY_ACC": "gpu"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    first = results.setdefault(case, done.stdout)
    if not alike(first, done.stdout):
        sys.exit(f"compare_cuda: {case.program}: {done.stdout!r} is not {first!r}")
    pattern, _ = SPEEDS[case.program]
    return {name or "speed": float(value) for name, value in re.findall(pattern, done.stderr)}


def alike(text: str, other: str) -> bool:
    """Are two results the same, but for the last digits of sums?"""
    number = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    if number.sub("#", text) != number.sub("#", other):
        return False
    pairs = zip(number.findall(text), number.findall(other), strict=True)
    return all(abs(float(x) - float(y)) <= CLOSE * abs(float(x)) for x, y in pairs)


def record(case: Case, name: str, runs: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    """What is kept of the runs of a case."""
    by_form = {form: [run[name] for run in of] for form, of in runs.items()}
    names = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(names, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return {
        "test": "by_hand", "program": case.program, "size": list(case.defines),
        "arguments": list(case.arguments), "of": name, "unit": SPEEDS[case.program][1],
        **by_form, "ratio": ratio(by_form, "xacc", "cuda"),
        "command": shlex.join(["python", *sys.argv]), "gpu": gpu,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
