"""Runs the jobs monitor's agent on a node with real GPUs, and nvidia-smi in the same seconds.

    python jobs/tests/gpu/jobs_on_gpus.py [SECONDS]

It prints one JSON line: both medians of each GPU, and the agent's cost.

There is no Slurm: a step is a tree of processes with the names of Slurm's (which takes root), the prolog is
Peerway's own script, and a scontrol of a few lines answers for the job that has no prolog. Job 41 keeps all
SMs of the first GPU busy. Job 42 keeps two SMs of the second GPU busy; job 41 also holds memory there.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from peerway_jobs.batch import Batch, Facts, Interval, Note
from peerway_jobs.batch_check import decode
from peerway_jobs.frames import BadFrame, read_frames

ROOT = Path(__file__).resolve().parents[3]
LOAD = [sys.executable, str(Path(__file__).parent / "programs" / "gpu_load.py")]
HOOK = ROOT / "jobs" / "peerway_jobs" / "slurm" / "prolog.sh"
NVML = "pynvml"
MEBIBYTES = 2048
FEW_BLOCKS = 2
ASKED = (
    "uuid,clocks_event_reasons.active,utilization.gpu,memory.used,power.draw,enforced.power.limit,"
    "temperature.gpu,clocks.sm"
)
STEP = (
    "import ctypes, subprocess, sys, time\n"
    "ctypes.CDLL(None).prctl(15, b'slurmstepd', 0, 0, 0)\n"
    "tasks = [subprocess.Popen(words.split('\\t'), stdout=subprocess.PIPE) for words in sys.argv[1:]]\n"
    "print(*(task.pid for task in tasks if task.stdout.readline()), flush=True)\n"
    "time.sleep(3600)\n"
)
# Answers what agent and doctor ask; the GPU number of the second job is filled in.
SCONTROL = """#!/bin/sh
case "$*" in
*"show config") echo "SLURM_VERSION = 26.05"; echo "GresTypes = gpu" ;;
*"show job 42") echo "JobId=42 UserId=ben(7002) JobState=RUNNING Restarts=0 Partition=gpu \
Nodes=n1 CPU_IDs=0-1 Mem=1024 GRES=gpu:1(IDX:MINOR)" ;;
*) echo "slurm_load_jobs error: Invalid job id specified"; exit 1 ;;
esac
"""


@dataclass
class Smi:
    """What nvidia-smi reports of a GPU at one moment."""

    reasons: int
    utilization: float
    memory_mebibytes: float
    power: float
    power_limit: float
    temperature: float
    clock_mhz: float


@dataclass
class Seen:
    """What the agent and nvidia-smi reported in the same seconds, while the jobs ran."""

    batches: list[Batch]
    smi: dict[str, list[Smi]] = field(default_factory=dict)
    minors: dict[str, int] = field(default_factory=dict)
    apps: dict[str, set[int]] = field(default_factory=dict)
    loads: dict[str, list[int]] = field(default_factory=dict)  # UUID -> processes that were started there
    page: str = ""
    doctor: list[dict[str, str]] = field(default_factory=list)
    error_text: str = ""

    def facts(self) -> Facts:
        """The agent's description of the node."""
        return next(batch.facts for batch in self.batches if batch.facts is not None)

    def notes(self, kind: str) -> list[Note]:
        return [note for batch in self.batches for note in batch.notes if note.kind == kind]

    def allocation(self, job: int) -> Interval:
        """The newest interval of a job's allocation."""
        found = [each for batch in self.batches for each in batch.intervals if each.job == job]
        return [each for each in found if each.step is None][-1]

    def series(self, metric: str, uuid: str = "") -> list[float]:
        """The values of a metric of a GPU, or of the node."""
        kind = "gpu" if uuid else "node"
        found = []
        for batch in self.batches:
            part = batch.samples[kind]
            place = part.devices.index(uuid or "node")
            value = part.values[metric][place] if metric in part.values else None
            if value is not None:
                found.append(float(value))
        return found

    def median(self, metric: str, uuid: str) -> float | None:
        """The median of a GPU's values; None if the agent does not report the metric."""
        found = self.series(metric, uuid)
        return statistics.median(found) if found else None

    def smi_median(self, name: str, uuid: str) -> float:
        return statistics.median(float(getattr(each, name)) for each in self.smi[uuid])


def query(kind: str, names: str) -> list[list[str]]:
    """The lines of `nvidia-smi --query-KIND`."""
    command = ["nvidia-smi", f"--query-{kind}={names}", "--format=csv,noheader,nounits"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[word.strip() for word in line.split(",")] for line in lines if line.strip()]


def numbers() -> dict[str, int]:
    """The N of /dev/nvidiaN of each GPU, in nvidia-smi's order."""
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True)
    found = {}
    for place, gpu in enumerate(ElementTree.fromstring(done.stdout).iter("gpu")):
        told = gpu.findtext("minor_number", "")
        found[gpu.findtext("uuid", "")] = int(told) if told.isdigit() else place
    return found


@contextlib.contextmanager
def step(job: int, *loads: str) -> Iterator[list[int]]:
    """Start a step's tree of processes; yields the pids of its tasks, once each has its GPU."""
    words = ["\t".join([*LOAD, *load.split()]) for load in loads]
    title = f'exec -a "slurmstepd: [{job}.batch]" {sys.executable} -c "$0" "$@"'
    tree = subprocess.Popen(
        ["bash", "-c", title, STEP, *words], stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},  # nvidia-smi's order
    )  # fmt: skip
    assert tree.stdout is not None
    tasks = [int(word) for word in tree.stdout.readline().split()]
    try:
        if len(tasks) != len(loads):
            raise RuntimeError(f"of {len(loads)} programs on GPUs {len(tasks)} run")
        yield tasks
    finally:
        subprocess.run(["kill", "-9", *(str(pid) for pid in tasks)], check=False, capture_output=True)
        tree.kill()
        tree.communicate()


@contextlib.contextmanager
def agent(folder: Path, interval_s: float) -> Iterator[subprocess.Popen[str]]:
    """Start the agent like its systemd unit, but with test settings."""
    settings = folder / "agent.toml"
    settings.write_text(
        f'node = "n1"\ninterval_s = {interval_s}\nstate = "{folder}/state"\n'
        f'page = "127.0.0.1:19472"\nnvml = "{NVML}"\n'
    )
    command = [sys.executable, "-m", "peerway", "jobs", "agent", "--settings", str(settings)]
    process = subprocess.Popen(command, env=environment(folder), stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def spooled(folder: Path) -> list[Batch]:
    payloads = []
    for path in sorted((folder / "state" / "spool").glob("*.frames")):
        with contextlib.suppress(BadFrame):  # the last frame is being written
            payloads += [payload for _, payload in read_frames(path.read_bytes())]
    return [decode(payload) for payload in payloads]


def look(seen: Seen) -> None:
    for uuid, reasons, *figures in query("gpu", ASKED):
        seen.smi.setdefault(uuid, []).append(Smi(int(reasons, 16), *map(float, figures)))


def doctor(folder: Path) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "peerway", "jobs", "doctor", "--settings", str(folder / "agent.toml")]
    done = subprocess.run(
        [*command, "--json"], env=environment(folder), capture_output=True, text=True, check=False
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def watch(seconds: int, interval_s: float = 1) -> Seen:
    """Run the jobs and the agent, and read nvidia-smi every second."""
    minors = numbers()
    first, second = list(minors)[:2]
    with tempfile.TemporaryDirectory(prefix="peerway-nvml-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "state" / "events").mkdir(parents=True)
        (folder / "scontrol").write_text(SCONTROL.replace("MINOR", str(minors[second])))
        (folder / "scontrol").chmod(0o755)
        subprocess.run([HOOK], check=True, env={
            "SLURM_JOB_ID": "41", "SLURM_JOB_UID": "7001", "SLURM_JOB_USER": "ann",
            "SLURM_JOB_GPUS": str(minors[first]), "PEERWAY_JOBS_EVENTS": str(folder / "state" / "events"),
        })  # fmt: skip
        few = stack.enter_context(step(42, f"1 {FEW_BLOCKS} {MEBIBYTES}"))
        of_41 = stack.enter_context(step(41, f"0 all {MEBIBYTES}", f"1 0 {MEBIBYTES}"))
        running = stack.enter_context(agent(folder, interval_s))
        while len(spooled(folder)) < 3:  # GPM reports means between two samples
            if running.poll() is not None:
                raise RuntimeError(f"the agent ended: {running.communicate()[1]}")
            time.sleep(0.2)
        before = len(spooled(folder))
        seen = Seen([], minors=minors, loads={first: of_41[:1], second: [*few, of_41[1]]})
        for _ in range(seconds):
            look(seen)
            time.sleep(1)
        whole = spooled(folder)
        for uuid in minors:
            seen.apps[uuid] = {int(pid) for gpu, pid in query("compute-apps", "gpu_uuid,pid") if gpu == uuid}
        request = urllib.request.Request(
            "http://127.0.0.1:19472/metrics", headers={"Accept": "application/openmetrics-text"}
        )
        seen.page = urllib.request.urlopen(request).read().decode()
        seen.doctor = doctor(folder)
        running.terminate()
        seen.error_text = running.communicate()[1]
    seen.batches = whole
    # Batches from before nvidia-smi was read keep their facts and notes, but lose their figures.
    for batch in seen.batches[:before]:
        for part in batch.samples.values():
            part.values = {metric: [None] * len(part.devices) for metric in part.values}
    return seen


def cost(seen: Seen) -> dict[str, float]:
    cpu = seen.series("agent_cpu_seconds_total")
    rounds = len(cpu) - 1
    return {
        "rounds": rounds,
        "cpu_ms_a_round": round(1000 * (cpu[-1] - cpu[0]) / rounds, 2),
        "percent_of_a_core_at_10_s": round(10 * (cpu[-1] - cpu[0]) / rounds, 3),
        "resident_mib": round(max(seen.series("agent_resident_bytes")) / (1 << 20), 1),
        "round_ms": round(1000 * statistics.median(seen.series("agent_tick_seconds")), 2),
    }


def record(seen: Seen) -> dict[str, object]:
    """Both medians of each figure, and the figures that only the agent reports."""
    gpus = []
    for facts in seen.facts().gpus:
        uuid = facts.uuid
        reasons = ("power", "thermal", "hardware")
        alone = ("sm_activity", "sm_occupancy", "tensor_activity", "dram_activity")
        gpus.append({
            "name": facts.name, "index": facts.index, "minor": facts.minor,
            "nvidia_smi": {name: seen.smi_median(name, uuid) for name in Smi.__annotations__},
            "agent": {
                "utilization": seen.median("gpu_utilization_ratio", uuid),
                "memory_bytes": seen.median("gpu_memory_used_bytes", uuid),
                "power": seen.median("gpu_power_watts", uuid),
                "power_limit": seen.median("gpu_power_limit_watts", uuid),
                "temperature": seen.median("gpu_temperature_celsius", uuid),
                "clock_hz": seen.median("gpu_sm_clock_hertz", uuid),
                "throttled": {why: seen.median(f"gpu_throttled_{why}_ratio", uuid) for why in reasons},
                **{name: seen.median(f"gpu_{name}_ratio", uuid) for name in alone},
                "processes": seen.median("gpu_processes", uuid),
                "foreign_processes": seen.median("gpu_foreign_processes", uuid),
            },
            "processes_of_nvidia_smi": len(seen.apps[uuid]),
        })  # fmt: skip
    return {
        "test": "agent on GPUs", "gpus": gpus, **cost(seen),
        "foreign_process_notes": [
            {"job": note.job, "owner": note.owner} for note in seen.notes("foreign_process")
        ],
        "doctor": [f"{each['state']}: {each['found']}" for each in seen.doctor if each["check"] == "gpus"],
        "agent_told": seen.error_text.splitlines(),
    }  # fmt: skip


if __name__ == "__main__":
    found = record(watch(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
    print(json.dumps({**found, "command": " ".join(["python", *sys.argv]), "time": time.time()}))
