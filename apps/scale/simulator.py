"""Build the simulator, run it, and keep what it says as records, which say that they are simulated.

    python apps/scale/simulator.py --machine torus:4x4 --pattern halo/put --bytes 1024,65536

The options are the simulator's own (--help lists them).
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import bounds
import click

from peerway import _core
from peerway_measure import records

sys.path.append(str(Path(__file__).resolve().parents[1]))

from compiling import ROOT, WARNINGS, at_once, host_compiler, make

HERE = Path(__file__).resolve().parent
FOLDER = ROOT / "build" / "scale"
NIC = {"hop-ns": 129, "message-ns": 850, "link-gbits": 75}


class CannotSimulate(click.ClickException):
    """Something is missing, or the compiler or the simulator failed; the message says which."""


@dataclass(frozen=True, slots=True)
class Case:
    """One simulation of a pattern on a machine. `seed` places ranks at random; None places neighbours
    near.
    """

    machine: str
    pattern: str
    sizes: tuple[int, ...]
    grid: str = ""
    seed: int | None = None
    parts: int = 1
    host_gbits: int = 0
    to: int = 1

    @property
    def via(self) -> str:
        """The name of the variant in records."""
        name = self.pattern.split("/")[-1] + ("/all-links" if self.parts > 1 else "")
        if name == "rings" and self.grid.isdecimal():
            name = "ring"  # one ring through all nodes
        return name + ("/shuffled" if self.seed is not None else "")

    @property
    def options(self) -> list[str]:
        """The simulator's options."""
        options = {"machine": self.machine, "pattern": self.pattern, "bytes": ",".join(map(str, self.sizes))}
        if self.grid:
            options["grid"] = self.grid
        if self.seed is not None:
            options["shuffle"] = str(self.seed)
        for name, value, usual in (
            ("parts", self.parts, 1),
            ("host-gbits", self.host_gbits, 0),
            ("to", self.to, 1),
        ):
            if value != usual:
                options[name] = str(value)
        return [word for name, value in options.items() for word in (f"--{name}", value)]


def build() -> Path:
    """Compile what has changed and link; returns the program.

    All sources are compiled together, because SimGrid's headers take longer to read than all our code.
    """
    if not Path("/usr/include/simgrid/s4u.hpp").exists():
        raise CannotSimulate("SimGrid is missing: apt-get install libsimgrid-dev")
    FOLDER.mkdir(parents=True, exist_ok=True)
    rings = HERE.parent / "hpl" / "broadcast.cpp"  # decides to which ranks a panel is sent
    sources = [*sorted(HERE.glob("*.cpp")), rings]
    program = FOLDER / "simulate"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one of several processes builds
        (whole,) = at_once(sources, FOLDER)
        command = [host_compiler(), "-std=c++20", "-O2", *WARNINGS, str(whole), "-lsimgrid"]
        make(program, command, [*sources, *HERE.glob("*.h"), rings.with_suffix(".h")])
    return program


def run(options: list[str]) -> list[dict[str, object]]:
    """Run the simulator with these options; returns one object for each size."""
    done = _must([str(build()), *options])
    return [json.loads(line) for line in done.splitlines()]


def simulate(case: Case) -> list[records.Record]:
    """A record for each size; valid if every rank got its data, and not faster than the lower bound."""
    command = " ".join(["python apps/scale/simulator.py", *case.options])
    return [_as_record(case, simulated, command) for simulated in run(case.options)]


def _as_record(case: Case, simulated: dict[str, object], command: str) -> records.Record:
    size, ranks, us = int(str(simulated["bytes"])), int(str(simulated["ranks"])), float(str(simulated["us"]))
    kind = case.pattern.split("/")[0]
    grid = case.grid or (bounds.extents_text(case.machine) if kind != "message" else "")
    least = bounds.least_us(case.machine, kind, grid, size, simulated, case.host_gbits)
    limit = f"/{case.host_gbits}G" if case.host_gbits else ""
    extra: dict[str, object] = {"simulated": True, "machine": case.machine, "grid": grid, "least_us": least}
    extra.update(NIC)
    of_routes = ("hops", "mean_hops", "most_hops", "most_faces")
    extra.update({name: simulated[name] for name in of_routes if name in simulated})
    return records.Record.from_samples(
        [1e3 * us],
        test=f"simulated_{kind}",
        via=case.via,
        op="put" if kind == "message" else kind,
        shape=f"{case.machine}{limit}" + (f" grid:{grid}" if grid else ""),
        bytes=size,
        ranks=ranks,
        source="simulated",
        target="simulated",
        validated=simulated["right"] is True and us >= least * (1 - 1e-6),
        cpu_percent=None,
        host=f"SimGrid {simulated['simgrid']}",
        device="simulated: {link-gbits} Gbit/s a link, {hop-ns} ns a hop, {message-ns} ns a message".format(
            **NIC
        ),
        driver="",
        version=_core.version(),
        command=command,
        extra=extra,
    )


def _must(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotSimulate(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(subprocess.run([str(build()), *sys.argv[1:]], check=False).returncode)
