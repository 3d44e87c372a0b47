"""For each rule of `peerway jobs`: a job that it must find, and one that it must not.

The jobs are submitted on the virtual cluster that small.toml describes, in three groups: `quiet` jobs, of
which only one computes, so all run at once on any machine; `computing` jobs, which need cores or whole nodes
for themselves; and `right` jobs, which also need them, and which no rule may find. Counters of hardware that
is not here (Lustre, InfiniBand) are files in the node's namespaces, which the job's own script counts up.
GPUs are those of fake_nvml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from peerway_measure.rehearse.cluster.gpus import PROGRAM, gpu_uuid

LOOP = "while :; do :; done"
SLEEP = "exec sleep 300"

# Smaller thresholds for jobs of partition lite, so that small jobs suffice for a finding.
LITE = {
    "gpu-idle-after-activity": 'long = "2s"',
    "short-swarm": "many = 5",
    "cpu-low": "serial = 0.02\n  low = 0.035",
    "nothing-computes": "little = 0.02",
    "serial": "most = 0.02\n  little = 0.01",
    "cpu-starved-gpu": "saturated = 0.05",
    "spread": "idle_cores = 0.03",  # of two cores, a node of many that compute gets a tenth of one
}


# Jobs of partition lite last less than two minutes here, and most users have enough of them to count as a
# swarm.
ANY_LITE = "short-swarm"


@dataclass(frozen=True)
class Kind:
    """A job, the rules that must find it, and those that may; no other rule may find it."""

    user: str
    options: tuple[str, ...]
    script: str
    rules: tuple[str, ...] = ()
    ends: bool = False  # by itself
    may: tuple[str, ...] = ()

    @property
    def allowed(self) -> set[str]:
        """All rules that may find the job."""
        return {*self.rules, *self.may, *(() if "-p" in self.options else (ANY_LITE,))}

    @property
    def sbatch(self) -> tuple[str, ...]:
        """Options of sbatch."""
        return ("-p", "lite", *self.options)


def _python(program: str) -> str:
    return f'exec python3 -c "{program}"'


def _counts_up(file: str, line: str, each: int) -> str:
    """A script that increments a counter in a file five times a second; `line` is the format in the file."""
    return (
        f"n=0; while :; do n=$((n + {each})); echo {line} > {file}.new; mv {file}.new {file}; sleep 0.2; done"
    )


def _traffic(words: int, files: int) -> str:
    """Words over InfiniBand and files that are opened on Lustre, so many five times a second."""
    infiniband = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
    lustre = "/proc/fs/lustre/llite/scratch-ffff0000/stats"
    opened = _counts_up(lustre, '"open $n samples [usec] 1 1 1"', files)
    return f"{_counts_up(infiniband, '$n', words)} & {opened}"


def quiet(folder: Path) -> dict[str, Kind]:
    """The jobs that can run at once."""

    def gpu(node: str, more: str, seconds: int = 300) -> str:
        return f"python3 {folder / PROGRAM} {folder}/gpus/{node} --seconds {seconds} {more}"

    def h100(user: str, gpus: int, more: str, *rules: str, may: tuple[str, ...] = ()) -> Kind:
        script = f"exec {gpu('h100-1', more)}" if more else SLEEP
        return Kind(user, ("-w", "h100-1", f"--gres=gpu:{gpus}"), script, rules, may=may)

    def a100(
        gpus: int, script: str, *rules: str, options: tuple[str, ...] = (), may: tuple[str, ...] = ()
    ) -> Kind:
        return Kind("ann", ("-w", "a100-1", f"--gres=gpu:{gpus}", *options), script, rules, may=may)

    def cpu(
        user: str, node: int, options: str, script: str, *rules: str, ends: bool = False,
        may: tuple[str, ...] = ("nothing-computes",),
    ) -> Kind:  # fmt: skip
        return Kind(user, ("-w", f"cpu-{node}", *options.split()), script, rules, ends, may)

    good = "--utilization 0.9 --sm 0.7 --memory-mb 60000 --power 350"
    apart = [
        f"CUDA_VISIBLE_DEVICES={n} {gpu('a100-1', f'--utilization {u}')}" for n, u in ((0, 0.9), (1, 0.2))
    ]
    # A parent whose child has not called exec yet is in state D, like a process that waits for a disk; the
    # child waits for a writer of the pipe.
    blocked = "import os; pipe = '/tmp/pipe%d' % os.getpid(); os.mkfifo(pipe); os.posix_spawn('/bin/true', "
    blocked += "['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, pipe, os.O_RDONLY, 0)])"
    held = "import time; data = b'x' * ({} << 20); time.sleep(300)"
    return {
        "good": Kind("ann", ("-p", "gpu", "-w", "h100-1", "--gres=gpu:1"), f"exec {gpu('h100-1', good)}"),
        "idle": h100("ann", 1, "", "gpu-idle"),
        "one_of_two": h100("ben", 2, f"--only 1 {good}", "gpu-one-used"),
        "foreign": h100(
            "ben", 1, f"--foreign {gpu_uuid('h100-1', 0)} --utilization 0.01", "foreign-process",
            may=("gpu-idle",),
        ),
        "memory_only": h100("ben", 1, "--memory-mb 8000", "gpu-memory-only", may=("gpu-idle",)),
        "busy_looking": h100("ann", 1, "--utilization 0.95 --sm 0.03", "gpu-busy-looking"),
        "hot": h100("ben", 1, "--throttle thermal --utilization 0.9 --sm 0.7", "throttled"),
        "no_gpu": Kind("ben", ("-w", "h100-1"), SLEEP, ("wrong-node-type", "nothing-computes")),
        "small": a100(
            1, f"exec {gpu('a100-1', '--utilization 0.15 --memory-mb 4000')}",
            "gpu-low", "gpu-too-big", "strands-gpus", options=("-c8",),
        ),
        "unbalanced": a100(2, f"{apart[0]} & {apart[1]} & wait", "gpu-unbalanced"),
        # It ends by itself: when all jobs are cancelled at once, the machine is so busy that agents are late,
        # and a gap in the data ends the idle time.
        "hangs": replace(
            a100(
                1, f"{gpu('a100-1', '--utilization 0.9', seconds=3)}; exec sleep 30",
                "gpu-idle-after-activity", options=("--time=2",), may=("gpu-low", "gpu-too-big"),
            ),
            ends=True,
        ),
        "serial": Kind("ann", ("-p", "cpu", "-w", "cpu-1", "-c8"), LOOP, ("serial",)),  # any core will do
        "nothing": cpu("ben", 1, "-c2", SLEEP, "nothing-computes"),
        "killed": cpu("ben", 1, "--mem=100", f"sleep 1; {_python(held.format(300))}", "out-of-memory",
            # Without free memory a job reads its program again and again; agents may miss its life of a few
            # seconds.
            may=("nothing-computes", "io-wait", "no-data"),
        ),
        "near": cpu("ben", 1, "--mem=500", _python(held.format(482)), "memory-near-limit"),
        "long": cpu("ann", 1, "--time=10", "sleep 6", "time-over-requested", ends=True),
        "roomy": cpu("ann", 2, "--mem=60000", SLEEP, "memory-over-requested"),
        "blocked": cpu("ann", 2, "-c1 --mem=100", _python(blocked), "io-wait"),
        "punctual": cpu("ann", 2, "--time=1 --mem=100", "sleep 6", ends=True),
        "swarm": cpu(
            "cat", 2, "--array=1-5 --mem=100", '[ "$SLURM_ARRAY_TASK_ID" != 5 ] || sleep 2', "short-swarm",
            ends=True, may=("time-over-requested", "no-data", "nothing-computes"),
        ),
    }  # fmt: skip


def computing(folder: Path) -> dict[str, Kind]:
    """The jobs that keep cores busy, or have two nodes to themselves."""
    starts_and_stops = (
        f"while :; do python3 {folder / PROGRAM} {folder}/gpus/a100-1 --seconds 0.6 --utilization 0.9; "
        "sleep 0.6; done"
    )
    return {
        "few_of_many": Kind("ann", ("-w", "h100-1", "-c32"), LOOP, ("cpu-low",), may=("wrong-node-type",)),
        "starved": Kind(
            "ben", ("-w", "a100-1", "--gres=gpu:1", "-c1"), f"{LOOP} & {LOOP} & {LOOP} & {starts_and_stops}",
            ("cpu-starved-gpu", "oversubscribed"), may=("gpu-low", "gpu-too-big"),
        ),
        "scattered": Kind(
            "ann", ("-N2", "-w", "cpu-1,cpu-2", "--exclusive"), _traffic(100_000_000, 5000),
            ("spread", "communication-bound", "metadata-storm"),
            may=("nothing-computes", "cpu-low", "serial"),
        ),
    }  # fmt: skip


def right(folder: Path) -> dict[str, Kind]:
    """Jobs that use what they requested, for the rules that no quiet job leaves silent."""
    program = f"{folder / PROGRAM} {folder}/gpus/a100-1"
    gpus = [f"CUDA_VISIBLE_DEVICES={n} python3 {program} --seconds 300 --utilization 0.9" for n in (0, 1)]
    several = f"{LOOP} & {LOOP} & {LOOP}"
    return {
        "balanced": Kind("ann", ("-w", "a100-1", "--gres=gpu:2"), f"{gpus[0]} & {gpus[1]} & wait"),
        "busy": Kind("ben", ("-w", "h100-1", "-c2"), f"{LOOP} & {LOOP}", may=("wrong-node-type",)),
        "both_nodes": Kind(
            "ann", ("-N2", "-w", "cpu-1,cpu-2", "--exclusive"),
            f"{_traffic(100, 1)} & exec srun sh -c '{several}'",
            may=("cpu-low",),  # three loops on 16 cores
        ),
    }  # fmt: skip


# A job -> the rules that apply to it and have its figures, and that must not find it. Each rule is here once.
COUNTERPARTS = {
    "good": (
        "gpu-idle", "gpu-idle-after-activity", "gpu-memory-only", "gpu-low", "gpu-busy-looking",
        "gpu-too-big", "cpu-starved-gpu", "throttled", "foreign-process", "no-data",
    ),
    "unbalanced": ("gpu-one-used",),
    "balanced": ("gpu-unbalanced", "strands-gpus"),
    "busy": ("cpu-low", "serial"),
    "both_nodes": ("spread", "metadata-storm", "communication-bound"),
    "serial": ("nothing-computes", "oversubscribed", "wrong-node-type", "short-swarm"),
    "near": ("memory-over-requested", "out-of-memory"),
    "roomy": ("memory-near-limit",),
    "nothing": ("io-wait",),
    "punctual": ("time-over-requested", "leftover-processes"),
}  # fmt: skip

HARDWARE = """
mount -t tmpfs tmpfs /proc/fs
mkdir -p /proc/fs/lustre/llite/scratch-ffff0000
mkdir /tmp/class
mount --bind /sys/class /tmp/class
mount -t tmpfs tmpfs /sys/class
mkdir -p /sys/class/net /sys/class/infiniband/mlx5_0/ports/1/counters
mount --bind /tmp/class/net /sys/class/net
chmod -R a+rwX /proc/fs/lustre /sys/class/infiniband
"""  # a node's files, at the paths that its agent reads
