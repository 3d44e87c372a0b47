"""Times programs with directives beside the same programs in CUDA by hand (cuda/*.cu), in turn.

    python examples/xacc/compare_cuda.py --out results/xacc/by-hand.jsonl [--repeat 5] [--programs stream ...]
    python examples/xacc/compare_cuda.py --gpus 2 --out results/xacc/by-hand-x2.jsonl

With several GPUs, those by hand are cuda/*_mpi.cu: mpicxx compiles their host code, and a CUDA-aware Open MPI
runs a rank for each GPU. Its UCX comes from UCX_ROOT, a wheel or the system. The sizes of the problems do not
depend on the number of GPUs.

A record has the speeds of all runs of one size, and the medians of the ratios of neighbours. A run whose
program finds its result wrong, or whose result is not that of the other form, ends everything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compare import HERE, PEERWAY, ratio

from peerway_measure.bench.peers import gpus, openmpi, places, ucx

HANG_S = 120.0  # seconds; a longer run counts as hanging
CLOSE = 1e-5  # relative: sums of floats in another order


@dataclass(frozen=True)
class Case:
    """One program at one size."""

    program: str
    defines: tuple[str, ...]
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """How one form of the programs is compiled and started."""

    source: str  # with {} for the program
    compiler: tuple[str, ...]
    libraries: tuple[str, ...]
    launcher: tuple[str, ...]
    environment: dict[str, str]


CASES = [
    Case("stream", ("N=67108864",)),
    Case("laplace", ("N=1024",), ("2000",)),
    Case("laplace", ("N=4096",), ("400",)),
    Case("laplace", ("N=16384",), ("50",)),
    Case("himeno", ("MI=129", "MJ=129", "MK=257", "STEPS=400")),
    Case("himeno", ("MI=257", "MJ=257", "MK=513", "STEPS=100")),
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
    options.add_argument("--gpus", type=int, choices=(1, 2, 4), default=1)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--programs", nargs="*", choices=SPEEDS, default=list(SPEEDS))
    given = options.parse_args()
    forms = {"xacc": with_directives(given.gpus)}
    forms |= {"cuda": in_cuda()} if given.gpus == 1 else {"cuda-mpi": in_cuda_and_mpi(given.gpus)}
    cases = [case for case in CASES if case.program in given.programs]
    records = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as compilers:
        builds = {
            case: {
                name: compilers.submit(build, case, form, Path(folder, name)) for name, form in forms.items()
            }
            for case in cases
        }
        programs = {case: {name: each.result() for name, each in of.items()} for case, of in builds.items()}
        for case in cases:
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in forms}
            for _ in range(given.repeat):
                for name, form in forms.items():
                    runs[name].append(speeds(case, form, programs[case][name]))
            for name in runs["xacc"][0]:
                records.append(record(case, given.gpus, name, runs))
                print(f"{case.program} {' '.join(case.defines)} {name}: {records[-1]['ratio']:.3f} x by hand")
    given.out.write_text("".join(json.dumps(line) + "\n" for line in records))


def with_directives(ranks: int) -> Form:
    """The programs with directives, with a process for each GPU."""
    launcher = (str(PEERWAY), "run", "-n", str(ranks), "--") if ranks > 1 else ()
    return Form("{}.c", (str(PEERWAY), "cc", "-O3"), ("-lm",), launcher, {"PEERWAY_ACC": "gpu"})


def in_cuda() -> Form:
    """The programs by hand for one GPU. Exits if nvcc is missing."""
    root = places.cuda_root()
    if root is None:
        sys.exit("compare_cuda: nvcc was not found; it compiles the programs in cuda/. Set CUDA_HOME")
    nvcc = (str(root / "bin" / "nvcc"), "-O3", "-std=c++17", "-arch=native", "--extended-lambda")
    return Form("cuda/{}.cu", nvcc, tuple(places.nvcc_flags(root)), (), {})


def in_cuda_and_mpi(ranks: int) -> Form:
    """The programs by hand for several GPUs. Exits if something that they need is missing."""
    shortage, library = gpus.shortage(ranks), ucx.with_cuda()
    mpicxx, mpirun = places.tool("mpicxx"), places.tool("mpirun")
    if shortage:
        sys.exit(f"compare_cuda: {shortage}")
    if mpicxx is None or mpirun is None:
        sys.exit(f"compare_cuda: mpicxx or mpirun was not found; {openmpi.INSTALL}")
    if library is None:
        sys.exit("compare_cuda: no UCX with CUDA was found for MPI; pip install libucx-cu13, or set UCX_ROOT")
    cuda = in_cuda()
    compiler = (*cuda.compiler, "-ccbin", mpicxx, f"-DRANKS={ranks}")
    launcher = (mpirun, "-n", str(ranks), *openmpi.binding(ranks), *openmpi.CUDA_OPTIONS)
    environment = {**openmpi.ENVIRONMENT, **library.environment}
    return Form("cuda/{}_mpi.cu", compiler, cuda.libraries, launcher, environment)


def build(case: Case, form: Form, folder: Path) -> str:
    """Compile a program for a case; its path."""
    folder.mkdir(exist_ok=True)
    program = str(folder / "-".join((case.program, *case.defines)))
    source = str(HERE / form.source.format(case.program))
    defines = [f"-D{define}" for define in case.defines]
    subprocess.check_call([*form.compiler, *defines, source, *form.libraries, "-o", program])
    return program


results: dict[Case, str] = {}


def speeds(case: Case, form: Form, program: str) -> dict[str, float]:
    """Run a program; the speeds that it prints, by their names."""
    command = [*form.launcher, program, *case.arguments]
    environment = {**os.environ, **form.environment}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=HANG_S
    )
    if done.returncode:
        sys.exit(
            f"compare_cuda: {shlex.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
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


def record(case: Case, ranks: int, name: str, runs: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    """What is kept of the runs of a case."""
    by_form = {form: [run[name] for run in of] for form, of in runs.items()}
    names = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(names, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return {
        "test": "by_hand", "program": case.program, "size": list(case.defines),
        "arguments": list(case.arguments), "gpus": ranks, "of": name, "unit": SPEEDS[case.program][1],
        **by_form, "ratio": ratio(by_form, *by_form),
        "command": shlex.join(["python", *sys.argv]), "gpu": gpu,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
