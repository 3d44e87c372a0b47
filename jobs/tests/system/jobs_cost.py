"""Measures the agent on a node with 50 jobs: CPU time of a round and resident memory, as it reports them.

    python jobs/tests/system/jobs_cost.py [ROUNDS [NVML]]      one JSON line for each way of following steps

"cgroups" is a node in a folder: 50 jobs with 4 tasks each in cgroups of version 2, 256 CPUs, 8 GPUs, and
1,500 kernel threads. "processes" is this machine's own /proc with 50 real trees of a process named slurmstepd
(as root) and 4 tasks. The GPUs are 8 fake ones; with NVML pynvml they are this machine's own. The first round
does not count, because it reads things that are read only once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peerway_jobs.batch import Batch
from peerway_jobs.batch_check import decode
from peerway_jobs.frames import read_frames

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "jobs" / "tests" / "shared"))

from node_tree import add_step, make_node, stat_line, write  # noqa: E402

from peerway_measure.rehearse.cluster import gpus  # noqa: E402
from peerway_measure.rehearse.cluster.description import Description, NodeType, Partition  # noqa: E402

JOBS, TASKS, CPUS, KERNEL_THREADS = 50, 4, 256, 1500
ROUND_S = 0.25
FAKE = "peerway_measure.rehearse.cluster.fake_nvml"
TREE = (
    "import ctypes, subprocess, sys, time\n"
    "ctypes.CDLL(None).prctl(15, b'slurmstepd', 0, 0, 0)\n"
    f"tasks = [subprocess.Popen(['sleep', '600']) for _ in range({TASKS})]\n"
    "print(flush=True)\n"
    "time.sleep(600)\n"
)


def measure(folder: Path, root: str, rounds: int, nvml: str) -> dict[str, float]:
    """Run the agent for `rounds` rounds; returns the cost of one."""
    (folder / "state" / "events").mkdir(parents=True)
    description = Description((NodeType("gpu", gpus=8, gpu_name="NVIDIA H100"),), (Partition("p", ("gpu",)),))
    if nvml == FAKE:
        gpus.prepare(description, folder)
    settings = folder / "agent.toml"
    settings.write_text(
        f'node = "n1"\ninterval_s = {ROUND_S}\nstate = "{folder}/state"\nroot = "{root}"\n'
        f'page = ""\nnvml = "{nvml}"\n'
    )
    agent = subprocess.Popen(
        [sys.executable, "-m", "peerway", "jobs", "agent", "--settings", str(settings)],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "jobs" / "tests" / "system"),
            "FAKE_GPUS": str(folder / "gpus" / "gpu-1"),
        },
    )
    try:
        deadline = time.monotonic() + 120
        while len(found := spooled(folder)) < rounds + 1 and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        agent.terminate()
        agent.wait()
    node = [batch.samples["node"].values for batch in found]
    cpu = [float(each["agent_cpu_seconds_total"][0] or 0) for each in node]
    values = sum(len(column) for part in found[-1].samples.values() for column in part.values.values())
    return {
        "rounds": len(found) - 1,
        "steps": len(found[-1].samples["step"].devices),
        "gpus": len(found[-1].samples["gpu"].devices) if "gpu" in found[-1].samples else 0,
        "values": values,
        "cpu_ms_a_round": round(1000 * (cpu[-1] - cpu[0]) / (len(cpu) - 1), 2),
        "percent_of_a_core_at_10_s": round(100 * (cpu[-1] - cpu[0]) / (len(cpu) - 1) / 10, 3),
        "resident_mib": round(
            max(float(each["agent_resident_bytes"][0] or 0) for each in node) / (1 << 20), 1
        ),
        "spool_bytes_a_round": round(sum(path.stat().st_size for path in spool(folder)) / len(found)),
    }


def spool(folder: Path) -> list[Path]:
    return sorted((folder / "state" / "spool").glob("*.frames"))


def spooled(folder: Path) -> list[Batch]:
    payloads = []
    for path in spool(folder):
        try:
            payloads += [payload for _, payload in read_frames(path.read_bytes())]
        except ValueError:  # the last frame is being written
            continue
    return [decode(payload) for payload in payloads]


def with_cgroups(rounds: int, nvml: str = FAKE) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="peerway-cost-") as name:
        folder = Path(name)
        root = folder / "root"
        make_node(root, CPUS)
        for job in range(1, JOBS + 1):
            add_step(root, 1000 + job, "0", version=26 if job == 1 else 2, tasks=TASKS)
        for pid in range(20_000, 20_000 + KERNEL_THREADS):
            write(root, f"proc/{pid}/stat", stat_line(pid, "kworker", 2).replace(" 500 1844", " 0 1844"))
        return measure(folder, str(root), rounds, nvml)


def with_processes(rounds: int, nvml: str = FAKE) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="peerway-cost-") as name:
        trees = [
            subprocess.Popen(
                ["bash", "-c", f'exec -a "slurmstepd: [{1000 + job}.0]" {sys.executable} -c "$0"', TREE],
                stdout=subprocess.PIPE,
            )
            for job in range(JOBS)
        ]
        try:
            for tree in trees:
                assert tree.stdout is not None
                tree.stdout.readline()
            return measure(Path(name), "/", rounds, nvml)
        finally:
            for tree in trees:
                for pid in Path(f"/proc/{tree.pid}/task/{tree.pid}/children").read_text().split():
                    subprocess.run(["kill", "-9", pid], check=False)
                tree.kill()
                tree.communicate()


WAYS = {"cgroups": with_cgroups, "processes": with_processes}

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    driver = sys.argv[2] if len(sys.argv) > 2 else FAKE
    for way, run in WAYS.items():
        record = {"way": way, "jobs": JOBS, "tasks": TASKS, "nvml": driver, **run(count, driver)}
        print(json.dumps(record), flush=True)
