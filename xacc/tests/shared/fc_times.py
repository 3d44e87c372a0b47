"""Times Fortran programs beside their forms in C on a GPU, in turn.

    python xacc/tests/shared/fc_times.py build FOLDER
    python xacc/tests/shared/fc_times.py run FOLDER --out FILE.jsonl [--repeat 5] [--programs cg ep ...]

`build` compiles every program in both languages; `run` needs no compiler. A record has all runs of a program
at one size, and the median of the ratios of neighbours: the time of Fortran over that of C. A run whose
program finds its result wrong, or whose result is not that of the other form, ends everything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from xacc_compiled import PEERWAY, ROOT, SAMPLES, run

LATTICE = ROOT / "apps" / "lqcd"
FORMS = ("c", "fortran")
CLOSE = 1e-4  # relative: sums of floats in another order
SPEEDS = {  # the figure that a program prints to stderr, and its unit
    "cg": (r"([\d.]+) s(?:,|$)", "s"),
    "ep": (r"([\d.]+) s$", "s"),
    "hop": (r"([\d.]+) s a hop", "s"),
    "laplace": (r"([\d.]+) million points", "million points a second"),
    "himeno": (r"([\d.]+) MFLOPS", "MFLOPS"),
}


@dataclass(frozen=True)
class Case:
    """One program at one size: its macros, and the arguments of the form in C and of that in Fortran."""

    program: str
    defines: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    fortran_arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "-".join((self.program, *self.defines)).replace("=", "")


CASES = [
    Case("cg", ("CLASS_A",)),
    Case("cg", ("CLASS_B",)),
    Case("ep", ("CLASS_A",)),
    Case("ep", ("CLASS_B",)),
    Case("laplace", ("N=1024",), ("2000",)),
    Case("laplace", ("N=4096",), ("400",)),
    Case("himeno", ("MI=129", "MJ=129", "MK=257")),
    Case("himeno", ("MI=257", "MJ=257", "MK=513")),
    Case("hop", ("EDGE=16",), ("500",), ("500",)),
    Case("hop", ("EDGE=32",), ("100",), ("100",)),
]


def main() -> None:
    """Build or run, as the first word says."""
    plain = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    options.add_argument("what", choices=("build", "run"))
    options.add_argument("folder", type=Path)
    options.add_argument("--out", type=Path)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--programs", nargs="*", choices=SPEEDS, default=list(SPEEDS))
    given = options.parse_args()
    folder = given.folder.resolve()
    cases = [case for case in CASES if case.program in given.programs]
    if given.what == "build":
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases:
            build(folder, case)
        libraries(folder)
        return
    with given.out.open("w") as out:
        for case in cases:
            line = record(case, timed(folder, case, given.repeat))
            print(f"{case.name}: Fortran takes {line['time_ratio']:.3f} x the time of C", flush=True)
            out.write(json.dumps(line) + "\n")
            out.flush()


def build(folder: Path, case: Case) -> None:
    """Compile both forms of a case to NAME-c and NAME-fortran."""
    flags = ["-O3", *(f"-D{define}" for define in case.defines)]
    output = {form: ["-lm", "-Wl,-rpath,$ORIGIN", "-o", f"{case.name}-{form}"] for form in FORMS}
    if case.program == "hop":
        halos = ["-DHT=1", "-DHZ=1"]  # one process exchanges halos with itself, as hop.f90 does
        compiled(folder, "cc", *flags, "-c", LATTICE / "fields.c", "-o", "fields.o")
        (folder / "hop.c").write_text(hop_in_c())
        compiled(folder, "cc", *flags, *halos, f"-I{LATTICE}", "hop.c", *output["c"])
        compiled(folder, "fc", "-cpp", *flags, LATTICE / "hop.f90", "fields.o", *output["fortran"])
    else:
        compiled(folder, "cc", *flags, SAMPLES / f"{case.program}.c", *output["c"])
        compiled(folder, "fc", "-cpp", *flags, sized(folder, case), *output["fortran"])
    for kind in ("mod", "xmp", "o", "c", "f90"):
        for rest in folder.glob(f"*.{kind}"):
            rest.unlink()


def hop_in_c() -> str:
    """The program xacc.c with the main function of the hop alone."""
    text = (LATTICE / "xacc.c").read_text()
    return text[: text.index("int main(")] + (LATTICE / "hop_main.c").read_text()


def sized(folder: Path, case: Case) -> Path:
    """The Fortran source; laplace.f90 has its size in a line, not in macros."""
    source = SAMPLES / f"{case.program}.f90"
    if case.program != "laplace":
        return source
    size, steps = case.defines[0].removeprefix("N="), case.arguments[0]
    text = source.read_text().replace("n = 64, steps = 20000", f"n = {size}, steps = {steps}")
    (folder / source.name).write_text(text)
    return folder / source.name


def compiled(folder: Path, *words: object) -> None:
    done = run(PEERWAY, *words, folder=folder)
    if done.returncode or done.stderr:
        sys.exit(f"fc_times: {shlex.join(str(word) for word in words)}:\n{done.stderr}")


def libraries(folder: Path) -> None:
    """Copy what programs of Fortran need at run time into their folder."""
    for library in ("libgfortran.so.5", "libquadmath.so.0", "libgomp.so.1"):
        place = run("gfortran", f"-print-file-name={library}", folder=folder).stdout.strip()
        shutil.copy(Path(place).resolve(), folder / library)


def timed(folder: Path, case: Case, repeat: int) -> dict[str, list[float]]:
    """What the runs of each form printed, without the first ones, which compile the kernels."""
    speeds: dict[str, list[float]] = {form: [] for form in FORMS}
    results: list[str] = []
    for turn in range(repeat + 1):
        for form in FORMS:
            arguments = case.fortran_arguments if form == "fortran" else case.arguments
            result, speed = once(folder, case, form, arguments)
            results.append(result)
            if not alike(results[0], result):
                sys.exit(f"fc_times: {case.name}-{form}: {result!r} is not {results[0]!r}")
            if turn:
                speeds[form].append(speed)
    return speeds


def once(folder: Path, case: Case, form: str, arguments: tuple[str, ...]) -> tuple[str, float]:
    """Run a program: its result, and the figure that it prints."""
    command = [PEERWAY, "run", "-n", "1", "--", f"./{case.name}-{form}", *arguments]
    done = run(*command, folder=folder, PEERWAY_ACC=os.environ.get("PEERWAY_ACC", "gpu"))
    match = re.search(SPEEDS[case.program][0], done.stderr, re.MULTILINE)
    if done.returncode or not match:
        sys.exit(f"fc_times: {case.name}-{form}:\n{done.stdout}{done.stderr}")
    return done.stdout, float(match[1])


def alike(text: str, other: str) -> bool:
    """Are two results the same, but for the last digits of numbers?"""
    if text.startswith("bits"):
        return text == other
    number = re.compile(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?")
    first, second = (number.findall(side.lower()) for side in (text, other))
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(
        abs(float(x) - float(y)) <= CLOSE * abs(float(x)) for x, y in pairs
    )


def record(case: Case, speeds: dict[str, list[float]]) -> dict[str, object]:
    """What is kept of the runs of a case."""
    pairs = zip(speeds["fortran"], speeds["c"], strict=True)
    unit = SPEEDS[case.program][1]
    ratios = [fortran / c if unit == "s" else c / fortran for fortran, c in pairs]
    return {
        "test": "fortran", "program": case.program, "size": list(case.defines), "ranks": 1, "unit": unit,
        **speeds, "time_ratio": round(statistics.median(ratios), 3),
        "command": shlex.join(["python", *sys.argv]), "gpu": gpu(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def gpu() -> str:
    """The name of the GPU and its driver, or that there is none."""
    names = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(names, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "none"


if __name__ == "__main__":
    main()
