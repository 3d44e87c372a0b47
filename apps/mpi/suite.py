"""MPICH's test suite over a NIC's plugin, and beside it without Peerway where a program fails.

    python apps/mpi/suite.py /tmp/suite/openmpi --mpirun mpirun.openmpi --out results/mpi-suite/openmpi.jsonl

docs/nic/mpi-suite.md says how the suite is built, and has the list that comes of this. Every program is run
once over the NIC, in little time. What did not pass is run again at the end, with all of its time and nothing
beside it: over the NIC, over UCX's own TCP with the same settings, and as the MPI runs it by itself. What
fails there as well is not the NIC's fault. Programs that --out already has are left out, so that an
interrupted run goes on.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import click
from testlist import FOLDERS, LIMIT_S, Program, Suite, passed

from peerway.launch.mpi import Launcher, MpiError, find_launcher, rank_environment
from peerway_common.cli.numbers import Number

TRANSPORTS = ("nic", "tcp", "alone")
GRACE_S = 30  # between the launcher's own time limit and ours
ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run of a program."""

    passed: bool
    seconds: float
    cpu_seconds: float  # of the launcher and all ranks: shows whether they worked or waited for a CPU
    output: str  # the first lines that a failed run printed
    late: bool  # it ran out of time, which says nothing on a busy machine

    def as_json(self) -> dict[str, object]:
        """The run's part of a record; the key of the output is "said"."""
        return {"said" if name == "output" else name: value for name, value in asdict(self).items()}


class Runner:
    """Starts programs with one MPI: over a NIC, over UCX's TCP, or as the MPI does by default."""

    def __init__(self, launcher: Launcher, nic: str) -> None:
        self.launcher = launcher
        self.nic = nic

    def typed(self, transport: str, program: Program) -> str:
        """The command as a person would type it in the program's folder."""
        words = self.command(transport, program, Path(program.name))
        if transport == "nic":
            words[:3] = ["peerway"]
        settings = [f"{name}={value}" for name, value in program.environment.items()]
        return shlex.join([*settings, *words])

    def command(self, transport: str, program: Program, file: Path) -> list[str]:
        """The words of the command."""
        words = ["--oversubscribe"] if self.launcher.kind == "openmpi" else []
        rest = ["-n", str(program.ranks)]
        if transport == "nic":
            options = [f"--launcher-option={word}" for word in words]
            start = [sys.executable, "-m", "peerway", "mpirun", "--nic", self.nic, *rest]
            start += ["--mpirun", self.launcher.path, *options, "--"]
        else:
            start = [self.launcher.path, *words, *rest]
        return [*start, f"./{file.name}", *program.arguments]

    def environment(self, transport: str, program: Program, limit: float) -> dict[str, str]:
        """The environment of the launcher, which its ranks inherit."""
        ours = os.environ | ALLOWED | program.environment | {"MPIEXEC_TIMEOUT": str(int(limit))}
        if transport == "tcp":
            settings = rank_environment(self.launcher, self.nic)
            kept = {name: value for name, value in settings.items() if name.startswith(("OMPI_", "MPIR_"))}
            ours |= kept | {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
        return ours

    def start(self, transport: str, program: Program, file: Path, limit: float) -> Run:
        """Run the program until it ends or its time is over."""
        begun = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                self.command(transport, program, file),
                cwd=file.parent,
                env=self.environment(transport, program, limit),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            ended = _wait(process, limit + GRACE_S)
            status, cpu_seconds = ended or _stop(process)
            output.seek(0)
            text = output.read().decode(errors="replace")
        seconds = time.monotonic() - begun
        late = ended is None or seconds >= limit
        good = not late and passed(program, status, text)
        why = f"not done after {limit:.0f} s: " if late else f"exit status {status}: "
        return Run(
            good, round(seconds, 2), round(cpu_seconds, 2), "" if good else why + _error_lines(text), late
        )


def _wait(process: subprocess.Popen[bytes], limit: float) -> tuple[int, float] | None:
    """The exit status and the CPU time of a process with all its children; None at the time limit."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used.ru_utime + used.ru_stime
        time.sleep(0.02)
    return None


def _stop(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """End a launcher, which ends its ranks."""
    process.terminate()
    if ended := _wait(process, 10):
        return ended
    os.killpg(process.pid, signal.SIGKILL)
    return _wait(process, GRACE_S) or (-signal.SIGKILL, 0.0)


def _error_lines(text: str) -> str:
    """The lines that say what went wrong."""
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line.strip("-= ") and line not in ("No Errors", "Test Passed")]
    return " | ".join(telling[:6])[:600]


def verdict(runs: dict[str, list[Run]]) -> str:
    """Whose fault the failure is, as far as the runs show."""

    def never(transport: str) -> bool:
        return not any(run.passed for run in runs[transport])

    def fails(transport: str) -> bool:
        return never(transport) and not all(run.late for run in runs[transport])

    if all(run.passed for run in runs["nic"]):
        return "passed"
    if all(run.late for transport in TRANSPORTS for run in runs[transport]):
        return "out of time"
    if never("nic") and fails("alone"):
        return "fails without Peerway"
    if never("nic") and fails("tcp"):
        return "fails over TCP of UCX"
    return "fails over the NIC" if never("nic") else "fails at times over the NIC"


@dataclass(frozen=True, slots=True)
class Judge:
    """Runs each program as often as its verdict needs."""

    runner: Runner
    suite: Suite
    tries: int
    timeout_multiplier: float

    def at_once(self, program: Program, limit: float) -> dict[str, object] | Run:
        """Run a program once over the NIC: its record if it passes, or else the failed run."""
        if not self.suite.file(program).exists():
            return self._record(program, "not built", {})
        run = self.runner.start("nic", program, self.suite.file(program), limit)
        return self._record(program, "passed", {"nic": [run]}) if run.passed else run

    def judge_failed(self, program: Program, first: Run) -> dict[str, object]:
        """Run a failed program again over all transports; `first` counts too, unless it ran out of time."""
        file, limit = self.suite.file(program), program.limit_s * self.timeout_multiplier
        runs: dict[str, list[Run]] = {transport: [] for transport in TRANSPORTS}
        runs["nic"] = [] if first.late else [first]
        while len(runs["nic"]) < self.tries:
            runs["nic"].append(self.runner.start("nic", program, file, limit))
            if first.late and runs["nic"][0].passed:
                return self._record(program, "passed", runs)
        for transport in TRANSPORTS[1:]:
            runs[transport].append(self.runner.start(transport, program, file, limit))
            for _ in range(self.tries - 1 if runs[transport][0].passed else 0):
                runs[transport].append(self.runner.start(transport, program, file, limit))
        return self._record(program, verdict(runs), runs)

    def _record(self, program: Program, verdict: str, runs: dict[str, list[Run]]) -> dict[str, object]:
        return {
            "suite": f"MPICH {self.suite.version}",
            "mpi": self.runner.launcher.kind,
            "nic": self.runner.nic,
            "command": self.runner.typed("nic", program),
            "program": program.title,
            "ranks": program.ranks,
            "load": round(os.getloadavg()[0], 1),
            "verdict": verdict,
            "runs": {
                transport: [run.as_json() for run in runs.get(transport, [])] for transport in TRANSPORTS
            },
        }


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--mpirun", required=True, help="The launcher of the MPI that the suite was built with.")
@click.option("--nic", default="torus", show_default=True, help="The NIC, as peerway mpirun takes it.")
@click.option("--in", "folders", type=click.Choice(FOLDERS), multiple=True, help="Only these folders.")
@click.option("--only", multiple=True, metavar="FOLDER/PROGRAM", help="Only these programs.")
@click.option("--tries", type=click.IntRange(1, 99), default=3, show_default=True, help="Runs of what fails.")
@click.option(
    "--timeout-multiplier",
    "--patience",  # its name in 0.1
    "timeout_multiplier",
    type=Number(0.01, 1000),
    default=1.0,
    help="Times the suite's own limits of time.",
)
@click.option(
    "--first", type=Number(1, 86400), default=LIMIT_S, help="Seconds that a program's first run may take."
)
@click.option("--at-once", type=click.IntRange(1, 99), default=1, help="First runs beside each other.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(
    *,
    folder: Path,
    mpirun: str,
    nic: str,
    folders: tuple[str, ...],
    only: tuple[str, ...],
    tries: int,
    timeout_multiplier: float,
    first: float,
    at_once: int,
    out: Path,
) -> None:
    """Run the suite that was built in FOLDER. Fails when a program fails over the NIC and nowhere else."""
    try:
        suite = Suite(folder.resolve())
        runner = Runner(find_launcher(shutil.which(mpirun) or mpirun), nic)
        judge = Judge(runner, suite, tries, timeout_multiplier)
    except (MpiError, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    out.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(record["program"], record["ranks"]) for record in known}
    wanted = [
        program
        for program in suite.programs(folders or FOLDERS)
        if (not only or f"{program.folder}/{program.name}" in only)
        and (program.title, program.ranks) not in done
    ]
    writing = Lock()

    def keep(record: dict[str, object]) -> str:
        with writing, out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        click.echo(f"{record['verdict']}: {record['program']} ({record['ranks']} ranks)")
        return str(record["verdict"])

    def run_once(program: Program) -> Run | None:
        record = judge.at_once(program, first)
        if isinstance(record, Run):
            click.echo(f"later: {program.title} ({program.ranks} ranks): {record.output}")
            return record
        keep(record)
        return None

    with ThreadPoolExecutor(at_once) as pool:
        later = [
            (program, run) for program, run in zip(wanted, pool.map(run_once, wanted), strict=True) if run
        ]
    verdicts = [keep(judge.judge_failed(program, run)) for program, run in later]
    sys.exit(1 if any("over the NIC" in each for each in verdicts) else 0)


if __name__ == "__main__":
    main()
